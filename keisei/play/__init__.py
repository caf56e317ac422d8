"""Playing what came out of training."""
