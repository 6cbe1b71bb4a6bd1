"""Preemption: evicts pods of lower priority to make room for a pod."""
