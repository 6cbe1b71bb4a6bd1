"""Extension API servers in a few lines."""
