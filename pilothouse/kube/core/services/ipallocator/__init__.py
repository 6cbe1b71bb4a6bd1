"""Cluster IPs: an address is taken by creating the IPAddress of that name in one of the ServiceCIDRs."""
