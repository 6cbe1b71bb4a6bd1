"""Comparison of owner references: changes, and different identities for the same uid."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.controllers.garbagecollector.graph import GraphNode, ObjectReference, OwnerReference
from pilothouse.machinery.dataclass import dataclass


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
    found = Partition([], [])
    for dependent in dependents:
        if owner.namespace and owner.namespace != dependent.identity.namespace:
            found.nonmatching.append(dependent)
            continue
        same = {each.owner == owner.coordinates for each in dependent.references_to(owner.uid)}
        if True in same:
            found.matching.append(dependent)
        if False in same:
            found.nonmatching.append(dependent)
    return found


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
    following = [each for each in alternates if each > absent]
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
