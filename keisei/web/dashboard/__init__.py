"""The dashboard: all runs of a directory in the browser, live."""
