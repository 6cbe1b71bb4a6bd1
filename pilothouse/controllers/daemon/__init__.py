"""daemonset-controller: one pod on every matching node."""
