"""What simulated containers and nodes do: by annotation, by SimulatedBehavior objects, or else by default."""
