"""Generated certificates and keys of a server, in kubeadm's layout."""
