"""Dynamic resource allocation: places pods where the devices of their ResourceClaims are, and allocates the devices.

Not supported: shared counters and capacity, binding conditions, extended resources backed by devices.
"""
