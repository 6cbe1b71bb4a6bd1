"""scheduling.k8s.io: priority classes, and groups of pods that are scheduled together."""
