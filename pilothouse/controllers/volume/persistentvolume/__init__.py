"""persistentvolume-binder-controller: binds claims to volumes, and reclaims released volumes."""
