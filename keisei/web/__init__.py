"""Keisei in the browser: a board to play on. Needs the extra ``web``."""
