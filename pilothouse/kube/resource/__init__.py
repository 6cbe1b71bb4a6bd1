"""resource.k8s.io: device claims, and devices offered by drivers."""
