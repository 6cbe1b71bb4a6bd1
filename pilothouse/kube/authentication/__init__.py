"""authentication.k8s.io: who somebody is, by their token or by their own request."""
