"""replicaset-controller: keeps the desired number of pods per replica set."""
