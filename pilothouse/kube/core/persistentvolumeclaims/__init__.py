"""PersistentVolumeClaims: what users ask of storage."""
