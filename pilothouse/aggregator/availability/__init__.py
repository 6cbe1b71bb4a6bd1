"""Availability of APIServices: the Available condition and its controllers."""
