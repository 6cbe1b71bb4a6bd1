"""The rules for the schemas of CustomResourceDefinitions."""
