"""HTTP/2 (RFC 9113) and header compression (RFC 7541), with every limit in our own hands."""
