"""authorization.k8s.io: access reviews."""
