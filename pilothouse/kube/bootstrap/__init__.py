"""The objects that every cluster has, made at start and kept by the server itself."""
