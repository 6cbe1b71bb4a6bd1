"""PersistentVolumes: pieces of storage that outlive the pods that use them."""
