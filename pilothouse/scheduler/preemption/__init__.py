"""Making room for a pod by deleting others of less priority."""
