"""KMS v2: data is encrypted here with a key that a plugin, reached over a Unix socket, encrypts."""
