"""policy: how many pods may be disrupted at a time."""
