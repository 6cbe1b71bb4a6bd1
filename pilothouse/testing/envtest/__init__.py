"""Replacements of envtest's binaries: `kube-apiserver`, `etcd` and `kubectl` in one folder.

envtest starts `etcd`, waits until it is healthy, starts `kube-apiserver` with its URL, and stops both with SIGTERM. The
`etcd` here (`etcd.py`) only answers health checks and has a data directory. `kube-apiserver` (`api_server.py`) is
`pilothouse serve` with the embedded store in that directory. It probes the etcd URL (`store_place.py`), so that a real
etcd is used as such.
"""
