"""internal.apiserver.k8s.io: data exchanged between API servers."""
