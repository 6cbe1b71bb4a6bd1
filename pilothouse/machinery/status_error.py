"""StatusError: base of all API errors, and the parts of a Status object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

NO_RESOURCE = GroupResource("", "")
NAMESPACE_TERMINATING = "NamespaceTerminating"
"""Reason of the cause of a rejected creation in a terminating namespace."""


class PilothouseError(Exception):
    """Base of all errors raised deliberately by the library.

    >>> from pilothouse.errors import ConfigError, NotFound, PilothouseError
    >>> issubclass(NotFound, PilothouseError) and issubclass(ConfigError, PilothouseError)
    True
    """


class StatusError(PilothouseError):
    """Error represented by a Status object. The Status omits `details` if it is None.

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
        """Metadata of the Status object: the continue token of an expired list."""

    @property
    def status(self) -> Json:
        """Status object with keys in upstream's order."""
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
        """Return the seconds until a retry; 0 if not specified."""
        return int((self.details or {}).get("retryAfterSeconds") or 0)


def has_status_cause(error: StatusError, reason: str) -> bool:
    """Report whether a cause in the details of the error has the reason."""
    return any(cause.get("reason") == reason for cause in (error.details or {}).get("causes") or ())


def details_of(resource: GroupResource, name: str = "", **more: Any) -> Json:
    """Return StatusDetails in upstream's key order, without empty fields."""
    parts = {"name": name, "group": resource.group, "kind": resource.resource, **more}
    return {key: value for key, value in parts.items() if value}


def aggregate(messages: Iterable[str]) -> str:
    """Join messages as upstream's Aggregate: without duplicates, in brackets if there is more than one."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
