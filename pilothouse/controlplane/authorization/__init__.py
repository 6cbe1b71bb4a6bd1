"""Who decides what users may do: the modes that flags name, or the authorizers of a configuration file."""
