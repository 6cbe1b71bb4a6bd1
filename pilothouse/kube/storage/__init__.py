"""storage.k8s.io: storage classes, CSI drivers, capacities and volume attachments."""
