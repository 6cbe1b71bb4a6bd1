"""Rules: the CEL expressions of x-kubernetes-validations, compiled against the schemas that they stand in."""
