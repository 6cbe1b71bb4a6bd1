"""networking.k8s.io: ingresses, network policies and service IPs."""
