"""events.k8s.io and the events of the core group: two views of one object."""
