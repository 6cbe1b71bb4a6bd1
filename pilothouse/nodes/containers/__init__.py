"""The inside of a simulated container: files in memory, an environment, and a shell with a few programs."""
