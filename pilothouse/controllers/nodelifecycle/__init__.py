"""node-lifecycle-controller: detects and taints unresponsive nodes."""
