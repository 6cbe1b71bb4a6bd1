"""What kubelets may do: with their own objects, and with what the pods on their node refer to."""
