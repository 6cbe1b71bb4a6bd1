"""Discovery: groups, versions and resources, as separate documents and as one aggregated document."""
