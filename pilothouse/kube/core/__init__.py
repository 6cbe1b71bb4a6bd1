"""The legacy group, served under /api/v1."""
