"""What follows from CustomResourceDefinitions: accepted names, conditions, cleanup."""
