"""The generic API server: a path mux, hooks, health checks and a lifecycle around one delegate."""
