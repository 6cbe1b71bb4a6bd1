"""Connections to a pod, directly or through the kubelet of the pod's node."""
