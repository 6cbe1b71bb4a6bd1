"""replicationcontroller-controller: ReplicaSetController for ReplicationControllers."""
