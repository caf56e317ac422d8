"""Networks. They know shapes, not Shogi rules and not configurations."""
