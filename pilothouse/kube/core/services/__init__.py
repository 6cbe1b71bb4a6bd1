"""Services: their rules, and the addresses and ports that they take from the cluster's pools."""
