"""ResourceQuota: what a write would use is checked against the quotas of its namespace, and charged to them."""
