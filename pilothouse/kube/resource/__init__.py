"""resource.k8s.io: claims for devices, and the devices that drivers offer."""
