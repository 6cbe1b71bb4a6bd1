"""Pods: defaults, validation, updates, subresources and connections to kubelets."""
