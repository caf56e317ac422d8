"""What a network thinks of a game that was played."""
