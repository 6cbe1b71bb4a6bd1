"""Somebody else decides: a webhook is asked in a SubjectAccessReview."""
