"""Who may do what: authorizers, each in its own file, and their union."""
