"""coordination.k8s.io: leases and lease candidates."""
