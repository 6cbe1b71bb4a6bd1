"""KMS v2: envelope encryption with a plugin on a Unix socket."""
