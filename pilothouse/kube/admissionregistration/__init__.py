"""admissionregistration.k8s.io: admission webhooks and policies."""
