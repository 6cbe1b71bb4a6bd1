"""The functions of CEL as Kubernetes has them, as one table: see `table`."""
