"""Networks: what predicts moves and values, where it is loaded from, and its kinds."""
