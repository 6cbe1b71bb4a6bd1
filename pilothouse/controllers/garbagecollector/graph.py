"""The dependency graph: objects by uid, and who depends on whom.

A node is virtual while all that is known of its object is that others name it as their owner: whether it exists, and
under which name, the API server has to confirm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json

DELETE_DEPENDENTS = "foregroundDeletion"
ORPHAN_DEPENDENTS = "orphan"
_FEW = 8
"""So many owners are looked through faster than an index is made, and nearly all objects have no more."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The owner that an owner reference names."""

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
    """The identity of an object. In their order kinds stay together, whether or not they are namespaced."""

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
    """The facts about an object at one resourceVersion that the collector decides by."""

    resource_version: str = ""
    owners: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    being_deleted: bool = False
    _by_uid: dict[str, list[OwnerReference]] = field(default_factory=dict, compare=False, repr=False)
    """The owners, once somebody has asked for one of very many."""

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
        """Quick, because each owner that turns out to be absent is looked up, and there may be tens of thousands."""
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
        """Return the owner references that name this uid."""
        return self.state.references_to(uid)

    @property
    def is_observed(self) -> bool:
        return not self.virtual

    def identified_as(self, identity: ObjectReference) -> GraphNode:
        """Return another node for the same uid, with the same dependents."""
        return GraphNode(identity, self.state, self.virtual, dict(self.dependents))

    def blocking_dependents(self) -> list[GraphNode]:
        """Return the dependents that must be gone before this one goes, which is never the node itself."""
        uid = self.identity.uid
        return [
            dependent
            for dependent in self.dependents
            if dependent is not self and any(owner.block_owner_deletion for owner in dependent.references_to(uid))
        ]
