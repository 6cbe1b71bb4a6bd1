"""The node authorizer: kubelets may use their own objects, and those that the pods on their node refer to."""
