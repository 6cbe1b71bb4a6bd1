"""authorization.k8s.io: who may do what."""
