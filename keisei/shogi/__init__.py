"""The game of Shogi: rules, notation, encodings, thousands of games at once. No torch here."""
