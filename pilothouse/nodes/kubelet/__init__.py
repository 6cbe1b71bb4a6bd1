"""The kubelets of all simulated nodes, as one server: logs, sessions in containers, forwarded ports, metrics."""
