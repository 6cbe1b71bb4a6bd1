"""Who makes a request: authenticators, each in its own file, and their union."""
