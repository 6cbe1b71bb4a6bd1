"""KubeAPIServer: the built-in groups, one folder a group, one file a resource."""
