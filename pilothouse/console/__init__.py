"""The console: a page on loopback that shows a cluster, and passes its requests on as the kubeconfig's user."""
