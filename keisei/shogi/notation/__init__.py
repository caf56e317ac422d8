"""How games and positions are written down: SFEN, USI, CSA, KIF, KI2."""
