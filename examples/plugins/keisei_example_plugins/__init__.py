"""One plug-in for Keisei of each kind: planes, rows, a network, a callback."""
