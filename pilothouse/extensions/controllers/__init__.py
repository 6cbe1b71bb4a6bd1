"""The controllers of CustomResourceDefinitions: accepted names, conditions, cleanup."""
