"""deployment-controller: rolls out pod templates of deployments by scaling replica sets."""
