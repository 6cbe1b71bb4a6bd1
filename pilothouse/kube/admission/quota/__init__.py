"""ResourceQuota: checks writes against the quotas of the namespace, and charges usage."""
