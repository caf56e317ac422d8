"""The sparse network: rows of tables for positions and moves, computed and trained by kernels."""
