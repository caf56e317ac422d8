"""Checkpoints: the state of a run on disk, and the networks in it."""
