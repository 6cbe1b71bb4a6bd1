"""certificates.k8s.io: requests to have certificates signed."""
