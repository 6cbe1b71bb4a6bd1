"""Who users are: the authenticators that flags and a configuration file ask for."""
