"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook: admission by external servers."""
