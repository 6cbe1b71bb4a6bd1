"""storage-version-migrator-controller: rewrites stored objects in the current storage format."""
