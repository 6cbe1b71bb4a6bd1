"""SPDY/3.1 as kubelets and kubectl speak it: streams in both directions on one upgraded connection, for either end."""
