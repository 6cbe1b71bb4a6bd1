"""The options of the server, one file per named section, with kube-apiserver's flag names and defaults."""
