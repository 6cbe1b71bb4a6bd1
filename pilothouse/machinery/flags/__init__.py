"""Command line flags as kube-apiserver parses them (pflag), declared as fields of dataclasses."""
