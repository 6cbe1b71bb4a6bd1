"""PodSecurity: the levels privileged, baseline and restricted of the Pod Security Standards."""
