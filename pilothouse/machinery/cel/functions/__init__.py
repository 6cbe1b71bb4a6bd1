"""What Kubernetes' own CEL functions do."""
