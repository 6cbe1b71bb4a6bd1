"""How far a reflector has come, and from which resource version it must go on."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(slots=True)
class SyncPosition:
    """`resource_version` is that of the last list, event or bookmark that went into the store."""

    resource_version: str = ""
    unavailable: bool = False
    """The server no longer has, or does not have yet, the state at `resource_version`."""

    def reached(self, resource_version: str) -> None:
        """A list at this version is in the store."""
        self.resource_version = resource_version
        self.unavailable = False

    @property
    def for_list(self) -> str:
        """Any state will do the first time ("0"); later none older than what was seen, so that nobody goes back in
        time; the newest ("") when the server does not have that one."""
        return "" if self.unavailable else self.resource_version or "0"

    @property
    def for_watch_list(self) -> str:
        """As for a list, except that the first stream is of the newest state."""
        return "" if self.unavailable else self.resource_version
