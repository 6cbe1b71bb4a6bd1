"""Static admission configuration: webhooks and policies in files of the server, immutable for clients."""
