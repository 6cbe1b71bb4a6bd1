"""coordination.k8s.io: leases, and who could hold them."""
