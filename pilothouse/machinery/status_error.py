"""The base of all API errors, each of which is a `Status` object, and the parts that a Status is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

NO_RESOURCE = GroupResource("", "")


class PilothouseError(Exception):
    """The root of all errors that the library raises on purpose.

    >>> from pilothouse.errors import ConfigError, NotFound, PilothouseError
    >>> issubclass(NotFound, PilothouseError) and issubclass(ConfigError, PilothouseError)
    True
    """


class StatusError(PilothouseError):
    """A failure that travels as a Status object. `details` is left out of the Status when it is None.

    >>> from pilothouse.errors import StatusError
    >>> error = StatusError("it broke")
    >>> error.status["code"], error.status["message"]
    (500, 'it broke')
    """

    reason: ClassVar[str] = ""
    code: int = 500

    def __init__(self, message: str, *, code: int | None = None, details: Json | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.code if code is None else code
        self.details = details
        self.list_metadata: Json = {}
        """The Status object's own metadata: where an expired list can go on."""

    @property
    def status(self) -> Json:
        """The Status object, with its keys in upstream's order."""
        out: Json = {"kind": "Status", "apiVersion": "v1", "metadata": self.list_metadata}
        out |= {"status": "Failure", "message": self.message}
        if self.reason:
            out["reason"] = self.reason
        if self.details is not None:
            out["details"] = self.details
        out["code"] = self.code
        return out

    @property
    def retry_after_seconds(self) -> int:
        """Return when to try again; 0 where nothing is said of it."""
        return int((self.details or {}).get("retryAfterSeconds") or 0)


def details_of(resource: GroupResource, name: str = "", **more: Any) -> Json:
    """StatusDetails in upstream's key order, empty parts left out."""
    parts = {"name": name, "group": resource.group, "kind": resource.resource, **more}
    return {key: value for key, value in parts.items() if value}


def aggregate(messages: Iterable[str]) -> str:
    """Several messages as upstream's Aggregate prints them: each once, in brackets when there is more than one."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
