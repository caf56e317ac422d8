"""Self-play in other processes: on this machine, or on a Ray cluster."""
