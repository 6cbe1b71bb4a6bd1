"""ttl-controller: cache TTL of kubelets."""
