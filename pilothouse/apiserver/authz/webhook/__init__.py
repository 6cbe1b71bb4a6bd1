"""Authorization by a SubjectAccessReview webhook."""
