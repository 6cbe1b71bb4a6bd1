"""The generic registry: the verbs of a resource, its rules (Strategy) and its storage."""
