"""Custom resources: endpoints, registries and strategies of the served definitions."""
