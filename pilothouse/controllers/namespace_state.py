"""Detection of terminating namespaces."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, part
from pilothouse.machinery.status_error import NAMESPACE_TERMINATING, StatusError, has_status_cause


def is_active(namespace: Json) -> bool:
    return part(namespace, "status").get("phase") == "Active"


def is_refusal_of_terminating_namespace(error: StatusError) -> bool:
    """Return whether a creation was rejected because the namespace is terminating."""
    return has_status_cause(error, NAMESPACE_TERMINATING)
