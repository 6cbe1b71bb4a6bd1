"""PodDisruptionBudgets. Updates require a resourceVersion."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Cell, Column
from pilothouse.kube.strategy import SpecAndStatusStrategy, StatusSubresource
from pilothouse.kube.validation import replica_counts
from pilothouse.kube.validation.fields import one_of
from pilothouse.kube.validation.selectors import shown_selector
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, number, part
from pilothouse.machinery.validation.conditions import validate_conditions
from pilothouse.machinery.validation.labels import LabelSelectorRules, validate_label_selector

DEPRECATED_LABEL = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
"""Label in selectors converted from policy/v1beta1: alone it selects everything or nothing; otherwise it is ignored."""
_MATCH_NONE: Json = {"matchExpressions": [{"key": DEPRECATED_LABEL, "operator": "Exists"}]}
_SPEC, _STATUS = root("spec"), root("status")


class PodDisruptionBudgetStrategy(SpecAndStatusStrategy):
    kind = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
    allow_unconditional_update = False

    def default(self, obj: Json) -> None:
        selector = obj["spec"].get("selector")
        if selector and selector.get("matchExpressions") and selector != _MATCH_NONE:
            kept = [
                expression for expression in selector["matchExpressions"] if expression.get("key") != DEPRECATED_LABEL
            ]
            if kept:
                selector["matchExpressions"] = kept
            else:
                del selector["matchExpressions"]

    def validate(self, obj: Json) -> Errors:
        """Upstream looks at the spec only, and leaves the metadata to the generic checks."""
        return _validate_spec(obj["spec"])

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return _validate_spec(obj["spec"], old["spec"])


class PodDisruptionBudgetStatusStrategy(StatusSubresource, PodDisruptionBudgetStrategy):
    def validate_update(self, obj: Json, old: Json) -> Errors:
        status = part(obj, "status")
        yield from validate_conditions(status.get("conditions"), _STATUS.child("conditions"))
        counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        yield from replica_counts.validate_counts(status, _STATUS, *counts)


def _validate_spec(spec: Json, old: Json | None = None) -> Errors:
    limits = {name: spec[name] for name in ("minAvailable", "maxUnavailable") if spec.get(name) is not None}
    if len(limits) == 2:
        yield invalid(
            _SPEC,
            {
                "MinAvailable": spec.get("minAvailable"),
                "Selector": shown_selector(spec.get("selector")),
                "MaxUnavailable": spec.get("maxUnavailable"),
                "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
            },
            "minAvailable and maxUnavailable cannot be both set",
        )
    for name, limit in limits.items():
        yield from replica_counts.validate_positive_int_or_percent(limit, _SPEC.child(name))
        yield from replica_counts.validate_not_more_than_100_percent(limit, _SPEC.child(name))
    was_wrong = old is not None and any(validate_label_selector(old.get("selector"), _SPEC))
    rules = LabelSelectorRules(allow_invalid_values=was_wrong)
    yield from validate_label_selector(spec.get("selector"), _SPEC.child("selector"), rules)
    if (policy := spec.get("unhealthyPodEvictionPolicy")) is not None:
        supported = ("AlwaysAllow", "IfHealthyBudget")
        yield from one_of(policy, _SPEC.child("unhealthyPodEvictionPolicy"), supported)


def _limit(field: str) -> Cell:
    return lambda obj: str(part(obj, "spec").get(field, "N/A"))


POD_DISRUPTION_BUDGETS = Resource(
    names=Names("poddisruptionbudgets", kind="PodDisruptionBudget", short=["pdb"]),
    strategy=PodDisruptionBudgetStrategy(),
    status=PodDisruptionBudgetStatusStrategy(),
    group="policy",
    columns=[
        NAME,
        Column(
            "Min Available",
            _limit("minAvailable"),
            description="The minimum number of pods that must be available.",
        ),
        Column(
            "Max Unavailable",
            _limit("maxUnavailable"),
            description="The maximum number of pods that may be unavailable.",
        ),
        Column(
            "Allowed Disruptions",
            lambda obj: number(obj, "status", "disruptionsAllowed"),
            type="integer",
            description="Calculated number of pods that may be disrupted at this time.",
        ),
        AGE,
    ],
)
