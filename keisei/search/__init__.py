"""Looking ahead: alpha-beta over material, and tree search over a network."""
