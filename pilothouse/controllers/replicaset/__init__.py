"""replicaset-controller: as many pods of one template as are wanted."""
