"""The pods that wait for a node."""
