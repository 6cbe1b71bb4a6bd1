"""Detection of terminating namespaces."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, part
from pilothouse.machinery.status_error import StatusError

_TERMINATING = "NamespaceTerminating"


def is_active(namespace: Json) -> bool:
    return part(namespace, "status").get("phase") == "Active"


def is_refusal_of_terminating_namespace(error: StatusError) -> bool:
    """Return whether a creation was rejected because the namespace is terminating."""
    return any(cause.get("reason") == _TERMINATING for cause in (error.details or {}).get("causes") or ())
