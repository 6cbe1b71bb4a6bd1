"""Behaviour of simulated containers and nodes: from annotations, SimulatedBehavior objects, or defaults."""
