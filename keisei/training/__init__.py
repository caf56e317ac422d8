"""The run: trainer, events, checkpoints, metrics, trackers, display."""
