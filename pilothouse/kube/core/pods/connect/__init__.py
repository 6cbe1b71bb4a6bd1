"""Connections to where a pod runs: the kubelet of its node, or the pod itself."""
