"""Brings a stored role or binding back to what is expected of it, and never takes anything away.

Rules, subjects, labels and annotations that are missing are added; those that somebody else added or changed stay.
"""

from __future__ import annotations

from pilothouse.kube.rbac.bootstrap.tables import AUTO_UPDATE
from pilothouse.kube.rbac.covering import uncovered
from pilothouse.kube.rbac.rules import PolicyRule
from pilothouse.machinery.objects import Json, metadata


def is_protected(obj: Json) -> bool:
    """Return whether an annotation says that the object is to be left alone."""
    return bool((metadata(obj).get("annotations") or {}).get(AUTO_UPDATE) == "false")


def refers_elsewhere(binding: Json, expected: Json) -> bool:
    """Return whether a binding refers to another role than expected. Since that never changes, it must be replaced."""
    return bool(binding.get("roleRef") != expected.get("roleRef"))


def reconciled(stored: Json, expected: Json) -> Json:
    """Return a new object with all that is expected; equal to the stored one where nothing is missing."""
    obj = {**stored, "metadata": {**metadata(stored)}}  # what is changed below is replaced, not changed in place
    for field in ("annotations", "labels"):
        metadata(obj)[field] = metadata(expected)[field] | (metadata(obj).get(field) or {})
    if "roleRef" in expected:
        found = obj.get("subjects") or []
        missing = [subject for subject in expected.get("subjects") or () if subject not in found]
        if missing:
            obj["subjects"] = [*found, *missing]
    else:
        _add_rules(obj, expected)
        _set_aggregation(obj, expected)
    return obj


def _add_rules(role: Json, expected: Json) -> None:
    if role.get("rules") == expected.get("rules"):
        return
    found, wanted = (role.get("rules") or (), expected.get("rules") or ())
    missing = uncovered([*map(PolicyRule.of, found)], map(PolicyRule.of, wanted))
    if missing:
        role["rules"] = [*found, *(rule.as_json() for rule in missing)]


def _set_aggregation(role: Json, expected: Json) -> None:
    """A role that is not expected to be made up of others stops being so; selectors are added, not replaced."""
    if "aggregationRule" not in expected:
        role.pop("aggregationRule", None)
        return
    found = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    missing = [each for each in expected["aggregationRule"]["clusterRoleSelectors"] if each not in found]
    if missing:
        role["aggregationRule"] = {"clusterRoleSelectors": [*found, *missing]}
