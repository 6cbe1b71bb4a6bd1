"""Clock: the server's own time, stopped, set, stepped or sped up."""
