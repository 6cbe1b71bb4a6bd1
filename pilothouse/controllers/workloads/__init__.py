"""Shared parts of workload controllers: ownership, pod creation and deletion, expectations."""
