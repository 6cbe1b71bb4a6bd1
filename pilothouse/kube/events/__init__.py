"""events.k8s.io and the events of the legacy group: two views of one object."""
