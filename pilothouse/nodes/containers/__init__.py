"""The inside of a simulated container: in-memory files, an environment, and a shell with a few programs."""
