"""service-cidr-controller: lifecycle of ServiceCIDRs."""
