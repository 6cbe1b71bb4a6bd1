"""Construction of the authenticators from flags and configuration files."""
