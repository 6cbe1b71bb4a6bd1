"""statefulset-controller: pods with stable names, network identity and storage."""
