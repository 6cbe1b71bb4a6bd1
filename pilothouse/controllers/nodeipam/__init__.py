"""node-ipam-controller: pod address ranges of nodes."""
