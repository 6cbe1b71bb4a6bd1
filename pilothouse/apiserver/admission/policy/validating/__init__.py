"""ValidatingAdmissionPolicy: expressions that must be true of what is written."""
