"""Keys shared by all servers of a cluster: storage, distribution, rotation."""
