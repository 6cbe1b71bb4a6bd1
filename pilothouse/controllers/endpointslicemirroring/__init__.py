"""endpointslicemirroring-controller: mirrors custom Endpoints to EndpointSlices."""
