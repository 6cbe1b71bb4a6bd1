"""Which requests a webhook or a policy is about."""
