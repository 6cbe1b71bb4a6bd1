"""Affinity and topology spread constraints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.validation.fields import dns_label, one_of, positive
from pilothouse.kube.validation.selectors import validate_node_selector, validate_node_selector_term
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.labels import (
    LabelSelectorRules,
    validate_label_name,
    validate_label_selector,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
KEYS_WITHOUT_SELECTOR = "must not be specified when labelSelector is not set"
KEY_IS_SELECTED_TWICE = "exists in both matchLabelKeys and labelSelector"


def validate_affinity(affinity: Json, path: Path, options: PodValidationOptions) -> Errors:
    if (nodes := affinity.get("nodeAffinity")) is not None:
        node_affinity_path = path.child("nodeAffinity")
        if (selector := nodes.get(REQUIRED)) is not None:
            allow = options.allow_invalid_node_affinity_values
            yield from validate_node_selector(selector, node_affinity_path.child(REQUIRED), allow_invalid_values=allow)
        for position, term in enumerate(nodes.get(PREFERRED) or ()):
            at = node_affinity_path.child(PREFERRED).index(position)
            yield from _validate_weight(term.get("weight") or 0, at.child("weight"))
            # Preferences may be unsatisfiable.
            preference = term.get("preference") or {}
            yield from validate_node_selector_term(preference, at.child("preference"), allow_invalid_values=True)
    for name in ("podAffinity", "podAntiAffinity"):
        if (pods := affinity.get(name)) is not None:
            affinity_path = path.child(name)
            for position, term in enumerate(pods.get(REQUIRED) or ()):
                yield from _validate_pod_term(term, affinity_path.child(REQUIRED).index(position), options)
            for position, weighted in enumerate(pods.get(PREFERRED) or ()):
                at = affinity_path.child(PREFERRED).index(position)
                yield from _validate_weight(weighted.get("weight") or 0, at.child("weight"))
                yield from _validate_pod_term(
                    weighted.get("podAffinityTerm") or {}, at.child("podAffinityTerm"), options
                )


def _validate_weight(weight: int, path: Path) -> Errors:
    if not 1 <= weight <= 100:
        yield invalid(path, weight, "must be in the range 1-100")


def _validate_pod_term(term: Json, path: Path, options: PodValidationOptions) -> Errors:
    yield from validate_term_selectors(term, path, allow_invalid_values=options.allow_invalid_selector_values)
    for namespace in term.get("namespaces") or ():
        yield from dns_label(namespace, path.child("namespace"))
    yield from validate_label_keys(
        path,
        term.get("labelSelector"),
        match=term.get("matchLabelKeys") or (),
        mismatch=term.get("mismatchLabelKeys") or (),
    )
    key = term.get("topologyKey") or ""
    if not key:
        yield required(path.child("topologyKey"), "can not be empty")
    yield from validate_label_name(key, path.child("topologyKey"))


def validate_term_selectors(term: Json, path: Path, *, allow_invalid_values: bool) -> Errors:
    rules = LabelSelectorRules(allow_invalid_values=allow_invalid_values)
    for name in ("labelSelector", "namespaceSelector"):
        yield from validate_label_selector(term.get(name), path.child(name), rules)


def validate_label_keys(
    path: Path, selector: Json | None, *, match: Sequence[str], mismatch: Sequence[str] = ()
) -> Errors:
    """Validate label keys whose values come from the pod. The keys of `match` are already merged into the selector."""
    yield from _validate_key_names(match, selector, path.child("matchLabelKeys"))
    yield from _validate_key_names(mismatch, selector, path.child("mismatchLabelKeys"))
    if match and selector is not None:
        positions = {key: position for position, key in enumerate(match)}
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key") or ""
            if key in positions and key in seen:
                yield invalid(path.index(positions[key]), key, KEY_IS_SELECTED_TWICE)
            seen.add(key)
    for position, key in enumerate(match):
        if key in mismatch:
            reason = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(path.child("matchLabelKeys").index(position), key, reason)


def _validate_key_names(keys: Collection[str], selector: Json | None, path: Path) -> Errors:
    if keys and selector is None:
        yield forbidden(path, KEYS_WITHOUT_SELECTOR)
        return
    for position, key in enumerate(keys):
        yield from validate_label_name(key, path.index(position))


_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_NODE_POLICIES = ("Honor", "Ignore")


def validate_topology_spread(constraints: Sequence[Json], path: Path, options: PodValidationOptions) -> Errors:
    following = Counter(map(_identity, constraints))
    for position, constraint in enumerate(constraints):
        at, selector = path.index(position), constraint.get("labelSelector")
        yield from positive(constraint.get("maxSkew") or 0, at.child("maxSkew"))
        following[_identity(constraint)] -= 1
        key, action = _identity(constraint)
        if not key:
            yield required(at.child("topologyKey"), "can not be empty")
        yield from one_of(action, at.child("whenUnsatisfiable"), _ACTIONS)
        if following[key, action]:
            yield duplicate(at.child("{topologyKey, whenUnsatisfiable}"), f"{{{key}, {action}}}")
        min_domains_path = at.child("minDomains")
        domains, action = constraint.get("minDomains"), constraint.get("whenUnsatisfiable") or ""
        if domains is not None:
            yield from positive(domains, min_domains_path)
            if action != "DoNotSchedule":
                reason = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                yield invalid(min_domains_path, domains, reason)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None:
                yield from one_of(constraint[name], at.child(name), _NODE_POLICIES)
        keys = constraint.get("matchLabelKeys") or ()
        if options.allow_legacy_match_label_keys:
            match_label_keys_path = at.child("matchLabelKeys")
            if keys and selector is None:
                yield forbidden(match_label_keys_path, KEYS_WITHOUT_SELECTOR)
            expressions = (selector or {}).get("matchExpressions") or ()
            selected = {
                *((selector or {}).get("matchLabels") or ()),
                *(expression.get("key") for expression in expressions),
            }
            for position, key in enumerate(keys):
                yield from validate_label_name(key, match_label_keys_path.index(position))
                if key in selected:
                    yield invalid(match_label_keys_path.index(position), key, KEY_IS_SELECTED_TWICE)
        else:
            yield from validate_label_keys(at, selector, match=keys)
        if not options.allow_invalid_topology_spread_selector:
            yield from validate_label_selector(selector, at.child("labelSelector"))


def _identity(constraint: Json) -> tuple[str, str]:
    """Return (topologyKey, whenUnsatisfiable): the identity of a constraint."""
    return constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
