"""disruption-controller: number of allowed pod disruptions per PodDisruptionBudget."""
