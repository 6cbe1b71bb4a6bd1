"""Discovery: which groups, versions and resources there are, in the old documents and in the aggregated one."""
