"""Audit: who asked for what, and what was answered, as a policy says, to a file and to a webhook."""
