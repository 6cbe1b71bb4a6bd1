"""Options of the server, with kube-apiserver's flag names and defaults. A module holds one or more named sections."""
