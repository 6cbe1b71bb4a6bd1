"""Construction of the authorizers from --authorization-mode or a configuration file."""
