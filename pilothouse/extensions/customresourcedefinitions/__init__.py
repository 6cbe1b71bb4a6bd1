"""CustomResourceDefinitions: strategy, storage and validation."""
