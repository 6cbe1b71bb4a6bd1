"""Projects of extension API servers: creation, development server, reference docs and manifests."""
