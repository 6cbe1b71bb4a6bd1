"""Services: rules, and allocation of cluster IPs and node ports."""
