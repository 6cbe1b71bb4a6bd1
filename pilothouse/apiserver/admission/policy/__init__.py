"""Admission policies: CEL expressions that validate or mutate objects, and their bindings."""
