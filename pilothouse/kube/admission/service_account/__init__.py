"""ServiceAccount: every pod runs as a service account that exists."""
