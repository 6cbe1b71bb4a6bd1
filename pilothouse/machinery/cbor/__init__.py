"""CBOR (RFC 8949) as Kubernetes speaks it: strings are byte strings, and an object is marked as CBOR by a tag."""
