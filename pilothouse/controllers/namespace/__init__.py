"""namespace-controller: deletes the content of terminating namespaces, then finalizes them."""
