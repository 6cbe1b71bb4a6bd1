"""Dependency graph: objects by uid, with owners and dependents, and comparison of owner references.

A node is virtual while it is known only from owner references; the API server must confirm its existence and name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json

DELETE_DEPENDENTS = "foregroundDeletion"
ORPHAN_DEPENDENTS = "orphan"
_FEW = 8
"""Maximum number of owners for a linear search, which is faster than an index; rarely exceeded."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The object named by an owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class OwnerReference:
    owner: Coordinates
    block_owner_deletion: bool | None = None
    controller: bool | None = None

    @property
    def uid(self) -> str:
        return self.owner.uid

    @classmethod
    def parse(cls, reference: Json) -> OwnerReference:
        owner = Coordinates(reference["apiVersion"], reference["kind"], reference["name"], reference["uid"])
        return cls(owner, reference.get("blockOwnerDeletion"), reference.get("controller"))

    def to_json(self) -> Json:
        at = self.owner
        parts: Json = {"apiVersion": at.api_version, "kind": at.kind, "name": at.name, "uid": at.uid}
        optional: dict[str, Any] = {"controller": self.controller, "blockOwnerDeletion": self.block_owner_deletion}
        return parts | {name: value for name, value in optional.items() if value is not None}


@dataclass(frozen=True, slots=True, order=True)
class ObjectReference:
    """Identity of an object. The sort order groups by kind, namespaced or not."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, owner: Coordinates, namespace: str) -> ObjectReference:
        return cls(owner.kind, owner.api_version, namespace, owner.name, owner.uid)

    @property
    def coordinates(self) -> Coordinates:
        return Coordinates(self.api_version, self.kind, self.name, self.uid)

    def __str__(self) -> str:
        at = f"{self.api_version}/{self.kind}, namespace: {self.namespace}"
        return f"[{at}, name: {self.name}, uid: {self.uid}]"


@dataclass(frozen=True, slots=True)
class ObjectState:
    """State of an object at one resourceVersion, as far as the collector needs it."""

    resource_version: str = ""
    owners: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    being_deleted: bool = False
    _by_uid: dict[str, list[OwnerReference]] = field(default_factory=dict, compare=False, repr=False)
    """Index of owners by uid, built lazily for objects with very many owners."""

    @classmethod
    def of(cls, obj: Json) -> ObjectState:
        meta = obj["metadata"]
        owners, finalizers = meta.get("ownerReferences"), meta.get("finalizers")
        return cls(
            meta.get("resourceVersion") or "",
            tuple(map(OwnerReference.parse, owners)) if owners else (),
            tuple(finalizers) if finalizers else (),
            bool(meta.get("deletionTimestamp")),
        )

    def references_to(self, uid: str) -> Sequence[OwnerReference]:
        """Return the references to a uid, indexed: every absent owner is looked up, among possibly tens of
        thousands."""
        if len(self.owners) <= _FEW:
            return [reference for reference in self.owners if reference.uid == uid]
        if not self._by_uid:
            for reference in self.owners:
                self._by_uid.setdefault(reference.uid, []).append(reference)
        return self._by_uid.get(uid, ())

    @property
    def is_deleting_dependents(self) -> bool:
        return self.being_deleted and DELETE_DEPENDENTS in self.finalizers

    @property
    def is_orphaning_dependents(self) -> bool:
        return self.being_deleted and ORPHAN_DEPENDENTS in self.finalizers


def identity_of(kind: GroupVersionKind, obj: Json) -> ObjectReference:
    meta = obj["metadata"]
    return ObjectReference(kind.kind, str(kind.group_version), meta.get("namespace") or "", meta["name"], meta["uid"])


NOTHING = ObjectState()


@dataclass(eq=False, slots=True)
class GraphNode:
    identity: ObjectReference
    state: ObjectState = NOTHING
    virtual: bool = False
    dependents: dict[GraphNode, None] = field(default_factory=dict)
    """An ordered set."""

    @property
    def owners(self) -> tuple[OwnerReference, ...]:
        return self.state.owners

    def references_to(self, uid: str) -> Sequence[OwnerReference]:
        """Return the owner references to this uid."""
        return self.state.references_to(uid)

    @property
    def is_observed(self) -> bool:
        return not self.virtual

    def identified_as(self, identity: ObjectReference) -> GraphNode:
        """Return a new node for the same uid and dependents, with another identity."""
        return GraphNode(identity, self.state, self.virtual, dict(self.dependents))

    def blocking_dependents(self) -> list[GraphNode]:
        """Return dependents, other than the node itself, with blockOwnerDeletion on this node."""
        uid = self.identity.uid
        return [
            dependent
            for dependent in self.dependents
            if dependent is not self and any(owner.block_owner_deletion for owner in dependent.references_to(uid))
        ]


@dataclass(frozen=True, slots=True)
class ChangedOwner:
    old: OwnerReference
    new: OwnerReference


@dataclass(frozen=True, slots=True)
class Diff:
    added: list[OwnerReference]
    removed: list[OwnerReference]
    changed: list[ChangedOwner]


def diff(old: Iterable[OwnerReference], new: Iterable[OwnerReference]) -> Diff:
    before = {reference.uid: reference for reference in old}
    added: list[OwnerReference] = []
    changed: list[ChangedOwner] = []
    for reference in new:
        known = before.pop(reference.uid, None)
        if known is None:
            added.append(reference)
        elif known != reference:
            changed.append(ChangedOwner(known, reference))
    return Diff(added, [*before.values()], changed)


@dataclass(frozen=True, slots=True)
class Partition:
    """Dependents by matching and differing identity; a dependent with several references can be in both."""

    matching: list[GraphNode]
    nonmatching: list[GraphNode]


def partition(dependents: Iterable[GraphNode], owner: ObjectReference) -> Partition:
    """Partition dependents into references with the owner's exact identity and references with its uid only."""
    parts = Partition([], [])
    for dependent in dependents:
        if owner.namespace and owner.namespace != dependent.identity.namespace:
            parts.nonmatching.append(dependent)
            continue
        same = {reference.owner == owner.coordinates for reference in dependent.references_to(owner.uid)}
        if True in same:
            parts.matching.append(dependent)
        if False in same:
            parts.nonmatching.append(dependent)
    return parts


def alternate_identity(dependents: Iterable[GraphNode], absent: ObjectReference) -> ObjectReference | None:
    """Return another identity that dependents use for the uid of an absent object.

    Identities are tried round-robin: the successor of the absent identity in sort order.
    """
    alternates = {
        identity
        for dependent in dependents
        for reference in dependent.references_to(absent.uid)
        if (identity := _alternate(dependent, reference, absent)) is not None
    }
    following = [alternate for alternate in alternates if alternate > absent]
    return min(following or alternates, default=None)


def _alternate(dependent: GraphNode, reference: OwnerReference, absent: ObjectReference) -> ObjectReference | None:
    namespace = dependent.identity.namespace
    if reference.owner == absent.coordinates and absent.namespace in ("", namespace):
        return None
    same_kind = (reference.owner.api_version, reference.owner.kind) == (absent.api_version, absent.kind)
    if not absent.namespace and same_kind:
        namespace = ""  # the absent identity has shown that this kind is cluster-scoped
    identity = ObjectReference.of(reference.owner, namespace)
    return None if identity == absent else identity
