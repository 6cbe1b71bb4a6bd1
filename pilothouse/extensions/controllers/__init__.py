"""Controllers of CustomResourceDefinitions: naming, conditions, finalization."""
