"""Claims of devices: pods go where the devices are that they ask for. Which are taken is decided here.

Left to others: devices that share counters or capacity, binding conditions, extended resources backed by devices.
"""
