"""Keeps what resource quotas say is used in step with what there is."""
