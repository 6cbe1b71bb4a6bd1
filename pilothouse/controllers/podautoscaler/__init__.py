"""horizontal-pod-autoscaler-controller: scales workloads by resource usage or other metrics."""
