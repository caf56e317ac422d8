"""How strong it is: opponents, matches, scores."""
