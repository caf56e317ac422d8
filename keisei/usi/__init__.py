"""Keisei as an engine for Shogi GUIs and match runners: the USI protocol. Needs no torch itself."""
