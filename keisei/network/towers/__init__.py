"""Towers: networks computed by torch, with a residual or transformer trunk."""
