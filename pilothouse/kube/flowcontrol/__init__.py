"""flowcontrol.apiserver.k8s.io: flow schemas and priority levels."""
