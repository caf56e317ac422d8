"""Where experience comes from."""
