"""The nodes with the pods that are on them, or soon will be."""
