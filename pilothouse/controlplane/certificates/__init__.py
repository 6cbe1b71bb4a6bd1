"""The certificates and keys that a server makes for itself, laid out as kubeadm lays them out."""
