"""HorizontalPodAutoscalers: how many replicas a workload has follows what its pods use, or what it has to do."""
