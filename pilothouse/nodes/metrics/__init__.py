"""metrics.k8s.io for simulated nodes and pods."""
