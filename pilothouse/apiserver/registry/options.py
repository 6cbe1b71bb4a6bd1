"""The decoded and validated options of each verb."""

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
    """Options of list, watch and deletecollection. Selectors use the field labels of the resource."""

    label_selector: labels.Selector = labels.EVERYTHING
    field_selector: fields.Selector = fields.EVERYTHING
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    """Never negative; 0 means no limit."""
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
    """Options of create, update and patch. An empty field manager stands for the name of the user agent."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool = False
    """Whether an apply takes fields from other managers."""
    raw: Json = field(default_factory=dict, hash=False)
    """The options as sent, for admission."""


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
    """The options as sent, for admission."""

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
    """Return the reason why a precondition fails, or ""."""
    for what, wanted, found in (
        ("UID", conditions.uid, uid_of(obj)),
        ("ResourceVersion", conditions.resource_version, resource_version_of(obj)),
    ):
        if wanted is not None and wanted != found:
            return f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    return ""


def invalid_object(key: str, reason: str) -> str:
    """Return the message of a failed precondition as upstream's storage writes it."""
    return f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {reason}"
