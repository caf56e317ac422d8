"""Players: bots, networks and USI engines, by their specs."""
