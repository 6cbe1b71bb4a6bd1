"""Updates of stateful sets: most of the spec is fixed, and what was wrong before may stay so."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.kube.apps.statefulset_validation import StatefulSetRules, validate_stateful_set_spec
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.machinery.field import Errors, Path, forbidden
from pilothouse.machinery.objects import Json

_MUTABLE = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)
_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def validate_stateful_set_update(spec: Json, old: Json, path: Path) -> Errors:
    rules = StatefulSetRules(any_service_name=True, any_claims=True, old_template=old["template"])
    if any(validate_stateful_set_spec(old, path, rules)):
        rules = replace(rules, any_template=True)
    yield from validate_stateful_set_spec(spec, path, rules)
    if not same_spec(_fixed(spec), _fixed(old)):
        yield forbidden(path, _FIXED)


def _fixed(spec: Json) -> Json:
    return {field: value for field, value in spec.items() if field not in _MUTABLE}
