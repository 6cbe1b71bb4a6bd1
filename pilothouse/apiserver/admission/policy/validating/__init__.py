"""ValidatingAdmissionPolicy: expressions that must be true for a write."""
