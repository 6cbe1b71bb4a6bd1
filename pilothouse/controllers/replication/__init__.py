"""replicationcontroller-controller: the replica sets' controller over their older kind."""
