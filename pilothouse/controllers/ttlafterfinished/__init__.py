"""ttl-after-finished-controller: deletes finished jobs after their TTL."""
