"""The proxy to aggregated API servers."""
