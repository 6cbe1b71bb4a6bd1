"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook: admission by servers that others run."""
