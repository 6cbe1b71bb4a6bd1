"""Rules: CEL expressions of x-kubernetes-validations, compiled against their schemas."""
