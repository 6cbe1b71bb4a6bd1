"""MutatingAdmissionPolicy: expressions that mutate objects."""
