"""admissionregistration.k8s.io: webhooks and policies that are asked before an object is written."""
