"""What the controllers of workloads share: owning pods, creating and deleting them, and not doing it twice."""
