"""HTTP/2 to other servers: many requests at once over one connection."""
