"""PriorityLevelConfigurations: concurrency of a level, and queuing of further requests; and the status of the group."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from pilothouse.apiserver.flowcontrol.mandatory import EXEMPT, MANDATORY_LEVELS
from pilothouse.apiserver.registry.metadata import carry_over, carry_over_metadata
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import KubeStrategy, SpecAndStatusStrategy
from pilothouse.kube.validation.fields import one_of, required_one_of
from pilothouse.kube.validation.internal_structs import ANY, NUMBER, TEXT, pointer, struct
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import (
    Errors,
    Path,
    declared,
    duplicate,
    forbidden,
    invalid,
    required,
    root,
)
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of, items, name_of, number, part, text
from pilothouse.machinery.validation.immutable import semantically_equal

GROUP = "flowcontrol.apiserver.k8s.io"

_KEEPS_ZERO = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_DEFAULT_SHARES = 30
_QUEUING_DEFAULTS = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}
_MAX_QUEUES = 10_000_000
_MAX_HASH_BITS = 60
_shown_spec = struct(
    Type=TEXT,
    Limited=pointer(
        struct(
            NominalConcurrencyShares=NUMBER,
            LimitResponse=struct(
                Type=TEXT, Queuing=pointer(struct(Queues=NUMBER, HandSize=NUMBER, QueueLengthLimit=NUMBER))
            ),
            LendablePercent=ANY,
            BorrowingLimitPercent=ANY,
        )
    ),
    Exempt=pointer(struct(NominalConcurrencyShares=ANY, LendablePercent=ANY)),
)


class FlowControlStatus(KubeStrategy):
    """Stands before a kind's own strategy: a write of the status changes neither metadata nor spec."""

    reset_fields: ClassVar[tuple[str, ...]] = ("metadata", "spec")

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over_metadata(obj, old)
        carry_over(obj, old, "spec")

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return validate_status(obj)


def validate_status(obj: Json) -> Errors:
    seen: set[str] = set()
    for position, condition in enumerate(items(obj, "status", "conditions")):
        path, kind = root("status", "conditions").index(position).child("type"), text(condition, "type")
        if kind in seen:
            yield duplicate(path, kind)
        seen.add(kind)
        if not kind:
            yield required(path)


class PriorityLevelStrategy(SpecAndStatusStrategy):
    kind = GroupVersionKind(GROUP, "v1", "PriorityLevelConfiguration")
    namespaced = False
    validates_updates_as_creates = True

    def default(self, obj: Json) -> None:
        spec = part(obj, "spec")
        if (limited := spec.get("limited")) is not None:
            _default_shares(limited, _DEFAULT_SHARES)
            queuing = part(limited, "limitResponse").get("queuing")
            if queuing is not None:
                queuing |= {name: queuing.get(name) or value for name, value in _QUEUING_DEFAULTS.items()}
        if (exempt := spec.get("exempt")) is not None:
            _default_shares(exempt, 0)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        if _KEEPS_ZERO in annotations_of(obj):
            yield forbidden(root("metadata", "annotations"), f"annotation '{_KEEPS_ZERO}' is forbidden")
        spec, name = part(obj, "spec"), name_of(obj)
        yield from _validate_spec(spec, name, root("spec"))
        fixed = MANDATORY_LEVELS.get(name)
        if fixed is not None:
            if name == EXEMPT:
                # Operators may tune the exempt level itself, and nothing else.
                spec_to_compare, exception = spec | {"exempt": fixed["exempt"]}, " except the 'spec.exempt' field"
            else:
                spec_to_compare, exception = spec, ""
            if not semantically_equal(spec_to_compare, fixed):
                yield invalid(
                    root("spec"), _shown_spec(spec), f"spec of '{name}'{exception} must equal the fixed value"
                )
        yield from validate_status(obj)


class PriorityLevelStatusStrategy(FlowControlStatus, PriorityLevelStrategy):
    pass


def _default_shares(level: Json, shares: int) -> None:
    for field, value in (("nominalConcurrencyShares", shares), ("lendablePercent", 0)):
        if level.get(field) is None:
            level[field] = value


def _validate_spec(spec: Json, name: str, path: Path) -> Errors:
    kind, limited, exempt = text(spec, "type"), spec.get("limited"), spec.get("exempt")
    if (name == EXEMPT) != (kind == "Exempt"):
        yield invalid(path.child("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt":
        if limited is not None:
            yield declared(forbidden(path.child("limited"), "must be nil if the type is not Limited"))
            if version_rules.holds("DeclaredValidation"):
                response = part(limited, "limitResponse")
                kind_path = path.child("limited", "limitResponse", "type")
                yield from map(declared, required_one_of(text(response, "type"), kind_path, ("Queue", "Reject")))
        if exempt is not None:
            exempt_path = path.child("exempt")
            if (shares := number(exempt, "nominalConcurrencyShares")) < 0:
                yield invalid(exempt_path.child("nominalConcurrencyShares"), shares, "must be a non-negative integer")
            yield from _validate_lendable(exempt, exempt_path)
    elif kind == "Limited":
        if exempt is not None:
            yield declared(forbidden(path.child("exempt"), "must be nil if the type is Limited"))
        if limited is None:
            yield declared(required(path.child("limited"), "must not be empty when type is Limited"))
        else:
            limited_path = path.child("limited")
            if (shares := number(limited, "nominalConcurrencyShares")) < 0:
                yield invalid(limited_path.child("nominalConcurrencyShares"), shares, "must be a non-negative integer")
            yield from _validate_response(part(limited, "limitResponse"), limited_path.child("limitResponse"))
            yield from _validate_lendable(limited, limited_path)
            if (limit := number(limited, "borrowingLimitPercent")) < 0:
                yield invalid(
                    limited_path.child("borrowingLimitPercent"), limit, "if specified, must be a non-negative integer"
                )
    else:
        check = required_one_of if version_rules.holds("AlignedMessages") else one_of
        yield from check(kind, path.child("type"), ("Exempt", "Limited"))
        if kind and limited is not None and version_rules.holds("DeclaredValidation"):
            yield declared(forbidden(path.child("limited"), ""))


def _validate_lendable(level: Json, path: Path) -> Errors:
    percent = number(level, "lendablePercent")
    if not 0 <= percent <= 100:
        yield invalid(path.child("lendablePercent"), percent, "must be between 0 and 100, inclusive")


def _validate_response(response: Json, path: Path) -> Errors:
    kind, queuing = text(response, "type"), response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            reason = "must be nil if limited.limitResponse.type is not Limited"
            yield declared(forbidden(path.child("queuing"), reason))
    elif kind != "Queue":
        check = required_one_of if version_rules.holds("AlignedMessages") else one_of
        yield from map(declared, check(kind, path.child("type"), ("Queue", "Reject")))
    elif queuing is None:
        yield declared(required(path.child("queuing"), "must not be empty if limited.limitResponse.type is Limited"))
    else:
        queuing_path = path.child("queuing")
        length, queues, hand = (number(queuing, name) for name in ("queueLengthLimit", "queues", "handSize"))
        if length <= 0:
            yield invalid(queuing_path.child("queueLengthLimit"), length, "must be positive")
        if queues <= 0:
            yield invalid(queuing_path.child("queues"), queues, "must be positive")
        elif queues > _MAX_QUEUES:
            yield invalid(queuing_path.child("queues"), queues, f"must not be greater than {_MAX_QUEUES}")
        if problem := _hand_problem(hand, queues):
            yield invalid(queuing_path.child("handSize"), hand, problem)


def _hand_problem(hand: int, queues: int) -> str:
    """Return the problem with a shuffle-sharding hand, or an empty string. The hash limits its bits."""
    if hand <= 0:
        return "must be positive"
    if hand > queues:
        return f"should not be greater than queues ({queues})"
    if math.ceil(math.log2(queues) * hand) <= _MAX_HASH_BITS:
        return ""
    deck = f"deckSize {queues} and handSize {hand}"
    return f"required entropy bits of {deck} should not be greater than {_MAX_HASH_BITS}"


def _shares(obj: Json) -> Any:
    limited = part(obj, "spec").get("limited")
    return "<none>" if limited is None else number(limited, "nominalConcurrencyShares")


def _queuing(field: str) -> Callable[[Json], Any]:
    def cell(obj: Json) -> Any:
        queuing = part(obj, "spec", "limited", "limitResponse").get("queuing")
        return "<none>" if queuing is None else number(queuing, field)

    return cell


_TYPES = "io.k8s.api.flowcontrol.v1."
_QUEUING = _TYPES + "QueuingConfiguration"
_SHARES = "nominalConcurrencyShares"
PRIORITY_LEVELS = Resource(
    names=Names("prioritylevelconfigurations", kind="PriorityLevelConfiguration"),
    strategy=PriorityLevelStrategy(),
    status=PriorityLevelStatusStrategy(),
    group=GROUP,
    columns=[
        NAME,
        Column(
            "Type",
            lambda obj: text(obj, "spec", "type"),
            documented=(_TYPES + "PriorityLevelConfigurationSpec", "type"),
        ),
        Column(
            "NominalConcurrencyShares",
            _shares,
            documented=(_TYPES + "LimitedPriorityLevelConfiguration", _SHARES),
        ),
        Column("Queues", _queuing("queues"), documented=(_QUEUING, "queues")),
        Column("HandSize", _queuing("handSize"), documented=(_QUEUING, "handSize")),
        Column("QueueLengthLimit", _queuing("queueLengthLimit"), documented=(_QUEUING, "queueLengthLimit")),
        AGE,
    ],
)
