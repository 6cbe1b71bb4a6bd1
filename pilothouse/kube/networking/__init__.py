"""networking.k8s.io: ingresses, network policies, and the addresses that services get."""
