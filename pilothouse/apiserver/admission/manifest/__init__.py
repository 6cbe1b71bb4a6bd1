"""Static admission configuration: webhooks and policies in files of the server, which no client can change."""
