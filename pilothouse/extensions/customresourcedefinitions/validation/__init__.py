"""Validation of CustomResourceDefinitions, by topic."""
