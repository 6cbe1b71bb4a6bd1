"""taint-eviction-controller: evicts pods that do not tolerate NoExecute taints."""
