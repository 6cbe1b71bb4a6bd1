"""SPDY/3.1 in Kubernetes' dialect: bidirectional streams on an upgraded connection, for client and server."""
