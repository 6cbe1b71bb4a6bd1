"""What makes the built-in API whole at start: objects that every cluster has, made and kept by the server itself."""
