"""The options that come with each verb, after decoding and validation."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, resource_version_of, uid_of
from pilothouse.machinery.selectors import fields, labels


@dataclass(frozen=True, slots=True)
class GetOptions:
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """For list, watch and deletecollection. Selectors name the resource's own field labels."""

    label_selector: labels.Selector = labels.EVERYTHING
    field_selector: fields.Selector = fields.EVERYTHING
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    """Never negative; 0: all."""
    continue_token: str = ""
    send_initial_events: bool | None = None

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError(f"a list has no limit of {self.limit}")

    @property
    def selects_everything(self) -> bool:
        return self.label_selector.empty and self.field_selector.empty


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Create, update and patch share these. An empty field manager means: the user agent's name."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool = False
    """An apply takes fields from their owners."""
    raw: Json = field(default_factory=dict, hash=False)
    """As they were sent, for admission."""


@dataclass(frozen=True, slots=True)
class Preconditions:
    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_period_seconds: int | None = None
    preconditions: Preconditions = Preconditions()
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: bool = False
    raw: Json = field(default_factory=dict)
    """The object as it was sent, for admission."""

    @classmethod
    def of(cls, raw: Json) -> DeleteOptions:
        conditions: dict[str, Any] = raw.get("preconditions") or {}
        return cls(
            grace_period_seconds=raw.get("gracePeriodSeconds"),
            preconditions=Preconditions(conditions.get("uid"), conditions.get("resourceVersion")),
            orphan_dependents=raw.get("orphanDependents"),
            propagation_policy=raw.get("propagationPolicy"),
            dry_run="All" in (raw.get("dryRun") or ()),
            raw=raw,
        )


def failed_precondition(obj: Json, conditions: Preconditions) -> str:
    """Empty when the object is the one that is meant."""
    for what, wanted, found in (
        ("UID", conditions.uid, uid_of(obj)),
        ("ResourceVersion", conditions.resource_version, resource_version_of(obj)),
    ):
        if wanted is not None and wanted != found:
            return f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    return ""


def invalid_object(key: str, why: str) -> str:
    """Return the message of a failed precondition as upstream's storage writes it."""
    return f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
