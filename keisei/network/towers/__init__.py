"""Networks in torch: residual and transformer towers over planes."""
