"""The terminal display of a run, and its log."""
