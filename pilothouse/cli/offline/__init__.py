"""Checks of manifests and policies without a cluster: the real server chain, in this process, without a socket."""
