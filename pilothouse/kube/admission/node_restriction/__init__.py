"""NodeRestriction: limits kubelets to their own Node and to the objects of pods on their Node."""
