"""Proximal policy optimisation for two alternating players."""
