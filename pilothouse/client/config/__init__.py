"""Where the server is and who we are: kubeconfig files, in-cluster service accounts, exec plugins."""
