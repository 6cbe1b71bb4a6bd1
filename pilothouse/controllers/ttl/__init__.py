"""How long kubelets may keep objects."""
