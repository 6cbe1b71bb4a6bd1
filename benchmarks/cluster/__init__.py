"""The load of a cluster's nodes, controllers and users on its API server, without the cluster."""
