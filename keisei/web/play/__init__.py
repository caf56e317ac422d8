"""The page with the board: ``keisei play`` and the dashboard's games against checkpoints."""
