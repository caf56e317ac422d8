"""Searching for good settings: many short runs, each with other values of some fields.

`space` reads what is to be searched, `check` refuses it if it is bad, `study` remembers every
trial in SQLite (optuna), `runner` trains them, each in a process of its own, and `results` writes
the best one as a recipe. `wandb_agent` does the same for a sweep that Weights & Biases directs.
"""
