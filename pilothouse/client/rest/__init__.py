"""REST client of the Kubernetes API, over HTTP or in-process."""
