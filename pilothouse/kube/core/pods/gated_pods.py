"""A pod that waits behind scheduling gates: where it may run can still be narrowed down."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.registry.carry_over import carry_over
from pilothouse.kube.core.pods.internal_form import internal_form
from pilothouse.kube.core.pods.validation.affinity import REQUIRED
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.immutable import semantically_equal


def validate_gated_changes(spec: Json, stored: Json, path: Path) -> Errors:
    """Node selectors may be added, and requirements to the terms of a required node affinity."""
    selector, before = spec.get("nodeSelector") or {}, stored.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in before.items()):
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid(path.child("nodeSelector"), spec.get("nodeSelector"), why)
    affinity, stored_affinity = _node_affinity(spec), _node_affinity(stored)
    if not semantically_equal(affinity, stored_affinity):
        at = path.child("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
        yield from _validate_terms(_terms(affinity), _terms(stored_affinity), at)


def munge_gated(spec: Json, stored: Json) -> None:
    """Puts back what was allowed to change, so that the rest can be compared."""
    carry_over(spec, stored, "nodeSelector")
    before = _node_affinity(stored)
    if semantically_equal(_node_affinity(spec), before):
        return
    affinity = {name: value for name, value in (spec.get("affinity") or {}).items() if name != "nodeAffinity"}
    if before is not None:
        affinity["nodeAffinity"] = before
    if affinity or stored.get("affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)


def _node_affinity(spec: Json) -> Json | None:
    return (spec.get("affinity") or {}).get("nodeAffinity")


def _terms(affinity: Json | None) -> Sequence[Json] | None:
    return ((affinity or {}).get(REQUIRED) or {}).get("nodeSelectorTerms")


def _validate_terms(terms: Sequence[Json] | None, stored: Sequence[Json] | None, path: Path) -> Errors:
    if not stored:
        return
    if terms is None or len(terms) != len(stored):
        printed = None if terms is None else [internal_form("NodeSelectorTerm", term) for term in terms]
        yield invalid(path, printed, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for position, (term, before) in enumerate(zip(terms, stored, strict=True)):
        if not _only_adds(term, before):
            shown = internal_form("NodeSelectorTerm", term)
            yield invalid(path.index(position), shown, "only additions are allowed (no mutations or deletions)")


def _only_adds(term: Json, stored: Json) -> bool:
    before = {name: stored.get(name) or [] for name in ("matchExpressions", "matchFields")}
    after = {name: term.get(name) or [] for name in before}
    # A term without requirements matches nothing, and one with some would match more.
    if not any(before.values()):
        return not any(after.values())
    return all(semantically_equal(after[name][: len(kept)], kept) for name, kept in before.items())
