"""MutatingAdmissionPolicy: expressions that say how an object is to be changed."""
