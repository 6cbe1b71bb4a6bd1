"""The generic API server. It knows no Kubernetes kind: give it resources and it serves them."""
