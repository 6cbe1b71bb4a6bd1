"""resourcequota-controller: recalculates the usage in ResourceQuota status."""
