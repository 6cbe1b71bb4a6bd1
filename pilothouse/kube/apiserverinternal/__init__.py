"""The group internal.apiserver.k8s.io: what the servers of a cluster tell each other."""
