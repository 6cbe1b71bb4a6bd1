"""Schemas of custom resources: their validation and their application to objects. No I/O."""
