"""endpointslice-controller: EndpointSlices of services with selectors."""
