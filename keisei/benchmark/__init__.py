"""Speed and strength of Keisei, measured side by side with other implementations of the same work.

One module per benchmark: each measures and prints its own table, and ``keisei benchmark NAME`` runs
it. Only `keisei.commands` and ``scripts/`` import this package.
"""
