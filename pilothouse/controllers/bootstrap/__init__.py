"""Bootstrap tokens: mutual trust between the cluster and joining nodes."""
