"""The HTTP layer over the registry: one verb per file, and the installer that derives verbs from a storage."""
