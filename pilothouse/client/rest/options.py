"""Options of requests, as upstream's ListOptions, PatchOptions and DeleteOptions."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

Params: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """Selection of objects for list and watch.

    >>> from pilothouse.client import ListOptions
    >>> selected = await client.resource("v1", "namespaces").list(ListOptions(field_selector="metadata.name=default"))
    >>> len(selected["items"])
    1
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str | None = None
    resource_version_match: str = ""
    limit: int = 0
    continue_: str = ""
    timeout_seconds: int | None = None
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None

    def params(self) -> Params:
        """Return the query parameters of all options that are set."""
        values = {
            "labelSelector": self.label_selector,
            "fieldSelector": self.field_selector,
            "resourceVersion": self.resource_version,
            "resourceVersionMatch": self.resource_version_match,
            "limit": str(self.limit) if self.limit else "",
            "continue": self.continue_,
            "timeoutSeconds": "" if self.timeout_seconds is None else str(self.timeout_seconds),
            "allowWatchBookmarks": _flag(self.allow_watch_bookmarks or None),
            "sendInitialEvents": _flag(self.send_initial_events),
        }
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options of create, update and patch. `force` applies to server-side apply only: take over fields of other
    managers.

    >>> from pilothouse.client import WriteOptions
    >>> maps = client.resource("v1", "configmaps", namespace="default")
    >>> _ = await maps.create({"metadata": {"name": "a"}}, WriteOptions(dry_run=True))
    >>> len((await maps.list())["items"])
    0
    """

    field_manager: str = ""
    field_validation: str = ""
    dry_run: bool = False
    force: bool | None = None

    def params(self) -> Params:
        """Return the query parameters of all options that are set."""
        values = {
            "fieldManager": self.field_manager,
            "fieldValidation": self.field_validation,
            "dryRun": "All" if self.dry_run else "",
            "force": _flag(self.force),
        }
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """Options of delete, sent as the request body.

    >>> from pilothouse.client import DeleteOptions
    >>> maps = client.resource("v1", "configmaps", namespace="default")
    >>> _ = await maps.create({"metadata": {"name": "a"}})
    >>> (await maps.delete("a", DeleteOptions(propagation_policy="Background")))["status"]
    'Success'
    """

    grace_period_seconds: int | None = None
    propagation_policy: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    def body(self) -> Json:
        """Return the DeleteOptions object."""
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        values: Json = {
            "gracePeriodSeconds": self.grace_period_seconds,
            "propagationPolicy": self.propagation_policy or None,
            "preconditions": {name: value for name, value in preconditions.items() if value} or None,
            "dryRun": ["All"] if self.dry_run else None,
        }
        kind: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        return kind | {name: value for name, value in values.items() if value is not None}


class PatchType(Enum):
    """Media types of patches. The body of an apply is JSON, a subset of YAML.

    >>> from pilothouse.client import PatchType
    >>> change = [{"op": "add", "path": "/metadata/labels/a", "value": "1"}]
    >>> patched = await client.resource("v1", "namespaces").patch("default", change, PatchType.JSON)
    >>> patched["metadata"]["labels"]["a"]
    '1'
    """

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


def _flag(value: bool | None) -> str:
    return "" if value is None else str(value).lower()
