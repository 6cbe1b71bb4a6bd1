"""Client configuration: kubeconfig, in-cluster configuration, credentials."""
