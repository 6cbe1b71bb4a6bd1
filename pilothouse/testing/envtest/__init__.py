"""Pilothouse in the place of envtest's programs: a `kube-apiserver`, an `etcd` and a `kubectl` in one folder.

envtest starts `etcd`, waits until it is healthy, starts `kube-apiserver` with its address, and ends both by SIGTERM.
Here `etcd` stands in for the real one (`etcd.py`): it is healthy, holds its ports and has a data directory.
`kube-apiserver` (`api_server.py`) is `pilothouse serve` with the embedded store in that directory; it asks the address
that it is given who is there (`store_place.py`), so that a real etcd is used as one.
"""
