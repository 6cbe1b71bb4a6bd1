"""flowcontrol.apiserver.k8s.io: which requests share which part of the server's concurrency."""
