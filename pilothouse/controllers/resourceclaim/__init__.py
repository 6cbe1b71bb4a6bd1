"""resourceclaim-controller: creates ResourceClaims from pod templates, and releases unused claims."""
