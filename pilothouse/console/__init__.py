"""The web console: a page on loopback that shows a cluster, and forwards its requests as the kubeconfig's user."""
