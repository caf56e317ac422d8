"""What the dashboard knows of runs: their files, read as they grow. No user interface, no torch."""
