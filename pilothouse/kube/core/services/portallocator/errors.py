"""Why a node port could not be allocated, in the words that end up in the service's field error."""

from __future__ import annotations


class PortAllocationError(Exception):
    """A port cannot be had."""


class PortRangeFull(PortAllocationError):
    def __init__(self) -> None:
        super().__init__("range is full")


class PortAlreadyAllocated(PortAllocationError):
    def __init__(self) -> None:
        super().__init__("provided port is already allocated")


class PortNotInRange(PortAllocationError):
    def __init__(self, valid: str) -> None:
        super().__init__(f"provided port is not in the valid range. The range of valid ports is {valid}")


class RangeMismatch(PortAllocationError):
    def __init__(self) -> None:
        super().__init__("the provided range does not match the current range")


class NotInitialized(PortAllocationError):
    """Before the first repair nobody knows which ports are taken."""

    def __init__(self) -> None:
        super().__init__("cannot allocate resources of type servicenodeports at this time")
