"""How fast Keisei is, measured side by side with what others do the same work with."""
