"""Custom resources: what is served for each CustomResourceDefinition."""
