"""CustomResourceDefinitions: the kind itself, with its rules."""
