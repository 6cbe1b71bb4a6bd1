"""The node authorizer: kubelets access their own objects, and objects referenced by pods on their node."""
