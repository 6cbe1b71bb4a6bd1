"""Kubernetes' protobuf: built-in kinds between JSON form and upstream's wire bytes, driven by `wire_facts`."""
