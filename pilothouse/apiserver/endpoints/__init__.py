"""The HTTP side of the registry: one verb a file, and the installer that gives a storage the verbs it can do."""
