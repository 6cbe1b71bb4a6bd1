"""What a pod becomes when its author leaves things out."""
