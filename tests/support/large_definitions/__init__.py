"""Definitions as large and as deep as those that operators install."""

from large_definitions.certificates import certificates
from large_definitions.compositions import compositions
from large_definitions.gateways import gateways
from large_definitions.large import GROUP, Large
from large_definitions.monitors import monitors

__all__ = ["GROUP", "Large", "certificates", "compositions", "gateways", "monitors"]
