"""Why an address could not be allocated, in the words that end up in the service's field error."""

from __future__ import annotations


class AllocationError(Exception):
    """An address cannot be had."""


class RangeFull(AllocationError):
    def __init__(self) -> None:
        super().__init__("range is full")


class AlreadyAllocated(AllocationError):
    def __init__(self) -> None:
        super().__init__("provided IP is already allocated")


class NetworkMismatch(AllocationError):
    def __init__(self) -> None:
        super().__init__("the provided network does not match the current range")


class AllocatorNotReady(AllocationError):
    def __init__(self) -> None:
        super().__init__("allocator not ready")


class NotInRange(AllocationError):
    def __init__(self, ip: str, valid: str) -> None:
        super().__init__(f"the provided IP ({ip}) is not in the valid range. The range of valid IPs is {valid}")
