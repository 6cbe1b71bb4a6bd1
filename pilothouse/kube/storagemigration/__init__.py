"""storagemigration.k8s.io."""
