"""Objects that the server creates at start and maintains."""
