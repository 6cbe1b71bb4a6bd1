"""Built-in controllers, for an API server that is usable without kube-controller-manager."""
