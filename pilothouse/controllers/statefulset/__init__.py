"""statefulset-controller: pods that keep their name, their place in the network and their storage."""
