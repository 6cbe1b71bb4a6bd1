"""metrics.k8s.io, for nodes and pods that use what the simulation says they use."""
