"""Checks of manifests and of policies without a cluster: the real server chain, in this process and without a socket."""
