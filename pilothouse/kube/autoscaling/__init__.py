"""autoscaling: horizontal pod autoscalers in two versions."""
