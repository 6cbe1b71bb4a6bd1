"""Pods that do not tolerate the taints of their node."""
