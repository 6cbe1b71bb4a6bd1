"""PodDisruptionBudgets: how many pods may be evicted at the moment."""
