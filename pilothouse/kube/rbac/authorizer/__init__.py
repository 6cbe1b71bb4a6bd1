"""The RBAC authorizer: an index of who is granted what, kept as the watch caches show it."""
