"""OpenAPI: one v2 document per server and one v3 document per group version, built on first request."""
