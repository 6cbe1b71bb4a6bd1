"""Volume plugins: volumes that restrict the placement of a pod, or wait for the placement."""
