"""storage-version-migrator-controller."""
