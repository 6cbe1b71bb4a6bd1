"""The validation of CustomResourceDefinitions, by topic."""
