"""Positions and games to look at: text, SVG, HTML."""
