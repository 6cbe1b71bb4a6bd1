"""authentication.k8s.io: identity of tokens and of the current user."""
