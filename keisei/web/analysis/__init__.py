"""The page that analyses games and positions, and the editor of positions."""
