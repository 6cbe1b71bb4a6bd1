"""endpoints-controller: Endpoints of services with selectors."""
