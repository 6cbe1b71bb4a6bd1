"""Policies for pod failures, success and pod replacement, and index lists of indexed jobs, such as `1,3-5,7`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from pilothouse.kube.validation.fields import nonnegative, one_of, qualified_name
from pilothouse.machinery import field
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import parse_int64, quote
from pilothouse.machinery.objects import Json, items, text

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_MAX_RULES = 20
_MAX_PATTERNS = 20
_MAX_EXIT_CODES = 255
_MAX_INDEXES_LENGTH = 64 * 1024

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def validate_failure_policy(spec: Json, path: field.Path) -> field.Errors:
    rules = items(spec, "podFailurePolicy", "rules")
    if len(rules) > _MAX_RULES:
        yield field.too_many(path.child("rules"), len(rules), _MAX_RULES)
    pod = spec["template"].get("spec") or {}
    names = {text(item, "name") for kind in ("containers", "initContainers") for item in pod.get(kind) or ()}
    per_index = spec.get("backoffLimitPerIndex") is not None
    for position, rule in enumerate(rules):
        rule_path = path.child("rules").index(position)
        action = text(rule, "action")
        action_path = rule_path.child("action")
        if not action:
            yield field.required(action_path, _valid_values(_ACTIONS))
        elif action == "FailIndex":
            if not per_index:
                yield field.invalid(action_path, action, "requires the backoffLimitPerIndex to be set")
        else:
            yield from one_of(action, action_path, _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), items(rule, "onPodConditions")
        if codes is not None:
            on_exit_codes_path = rule_path.child("onExitCodes")
            operator = text(codes, "operator")
            if not operator:
                yield field.required(on_exit_codes_path.child("operator"), _valid_values(_OPERATORS))
            elif operator not in _OPERATORS:
                yield field.not_supported(on_exit_codes_path.child("operator"), operator, _OPERATORS)
            name = codes.get("containerName")
            if name is not None and name not in names:
                reason = "must be one of the container or initContainer names in the pod template"
                yield field.invalid(on_exit_codes_path.child("containerName"), name, reason)
            yield from _validate_codes(codes.get("values"), on_exit_codes_path.child("values"), operator)
        yield from _validate_pod_conditions(conditions, rule_path.child("onPodConditions"))
        if codes is not None and conditions:
            yield field.invalid(
                rule_path, field.OMIT_VALUE, "specifying both OnExitCodes and OnPodConditions is not supported"
            )
        if codes is None and not conditions:
            yield field.invalid(
                rule_path, field.OMIT_VALUE, "specifying one of OnExitCodes and OnPodConditions is required"
            )


def validate_replacement_policy(spec: Json, path: field.Path) -> field.Errors:
    if (policy := spec.get("podReplacementPolicy")) is not None:
        supported = _REPLACEMENTS if spec.get("podFailurePolicy") is None else ("Failed",)
        yield from one_of(policy, path, supported)


def validate_success_policy(spec: Json, path: field.Path) -> field.Errors:
    rules = items(spec, "successPolicy", "rules")
    path = path.child("rules")
    if not rules:
        yield field.required(path, "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > _MAX_RULES:
        yield field.too_many(path, len(rules), _MAX_RULES)
    for position, rule in enumerate(rules):
        yield from _validate_success_rule(rule, path.index(position), spec.get("completions") or 0)


def shown_failure_policy(policy: Json | None) -> Json | None:
    """Return the policy as upstream's messages print it."""
    return None if policy is None else {"Rules": _shown_rules(policy, _shown_rule)}


def shown_success_policy(policy: Json | None) -> Json | None:
    if policy is None:
        return None
    fields = ("SucceededIndexes", "SucceededCount")
    return {"Rules": _shown_rules(policy, lambda rule: {name: rule.get(name[0].lower() + name[1:]) for name in fields})}


def _shown_rules(policy: Json, shown: Callable[[Json], Json]) -> list[Json] | None:
    rules = policy.get("rules")
    return None if rules is None else [shown(rule) for rule in rules]


def _validate_pod_conditions(patterns: list[Json], path: field.Path) -> field.Errors:
    if len(patterns) > _MAX_PATTERNS:
        yield field.too_many(path, len(patterns), _MAX_PATTERNS)
    for position, pattern in enumerate(patterns):
        yield from qualified_name(text(pattern, "type"), path.index(position).child("type"))
        yield from one_of(text(pattern, "status"), path.index(position).child("status"), _STATUSES)


def _validate_codes(codes: list[int] | None, path: field.Path, operator: str) -> field.Errors:
    if not codes:
        yield field.invalid(path, codes, "at least one value is required")
        return
    if len(codes) > _MAX_EXIT_CODES:
        yield field.too_many(path, len(codes), _MAX_EXIT_CODES)
    for position, code in enumerate(codes):
        if operator == "In" and code == 0:
            yield field.invalid(path.index(position), code, "must not be 0 for the In operator")
        if code in codes[:position]:
            yield field.duplicate(path.index(position), code)
    if sorted(codes) != codes:
        yield field.invalid(path, codes, "must be ordered")


def _validate_success_rule(rule: Json, path: field.Path, completions: int) -> field.Errors:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        yield field.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if indexes is not None:
        if len(indexes) > _MAX_INDEXES_LENGTH:
            yield field.too_long(path.child("succeededIndexes"), _MAX_INDEXES_LENGTH)
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            yield field.invalid(path.child("succeededIndexes"), indexes, f"error parsing succeededIndexes: {error}")
    if count is not None:
        yield from _validate_succeeded_count(count, path.child("succeededCount"), completions)
    if count is not None and indexes is not None and count > total:
        reason = (
            f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        )
        yield field.invalid(path.child("succeededCount"), count, reason)


def _validate_succeeded_count(count: int, path: field.Path, completions: int) -> field.Errors:
    yield from nonnegative(count, path)
    if count > completions:
        reason = f"must be less than or equal to {completions} (the number of specified completions)"
        yield field.invalid(path, count, reason)


def _valid_values(values: Iterable[str]) -> str:
    return f"valid values: [{' '.join(map(quote, values))}]"


def _shown_rule(rule: Json) -> Json:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    return {
        "Action": text(rule, "action"),
        "OnExitCodes": None
        if codes is None
        else {
            "ContainerName": codes.get("containerName"),
            "Operator": text(codes, "operator"),
            "Values": codes.get("values"),
        },
        "OnPodConditions": conditions
        and [{"Type": text(condition, "type"), "Status": text(condition, "status")} for condition in conditions],
    }


class IndexesError(ValueError):
    """A list of indexes cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Interval:
    first: int
    last: int


def count_indexes(text: str, completions: int) -> int:
    """Return the number of indexes in the list. Raises IndexesError."""
    total, previous = 0, None
    for part in text.split(",") if text else ():
        interval = _interval(part, completions)
        if previous is not None and previous >= interval.first:
            raise IndexesError(f"non-increasing order, previous: {previous}, current: {interval.first}")
        total += interval.last - interval.first + 1
        previous = interval.last
    return total


def first_overlap(text: str, other: str, completions: int) -> int | None:
    """Return the first common index of two lists. Unparsable parts are skipped.

    1-3,8  and  2,9   → 2
    """
    first_intervals, second_intervals = _readable(text, completions), _readable(other, completions)
    a, b = next(first_intervals, None), next(second_intervals, None)
    while a is not None and b is not None:
        if a.first <= b.last and b.first <= a.last:
            return max(a.first, b.first)
        if a.first <= b.first:
            a = next(first_intervals, None)
        else:
            b = next(second_intervals, None)
    return None


def _readable(text: str, completions: int) -> Iterator[Interval]:
    for part in text.split(",") if text else ():
        try:
            yield _interval(part, completions)
        except IndexesError:
            continue


def _interval(text: str, completions: int) -> Interval:
    limits = text.split("-")
    if len(limits) > 2:
        reason = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexesError(f"the fragment {quote(text)} {reason}")
    first = _index(limits[0], completions)
    if len(limits) == 1:
        return Interval(first, first)
    last = _index(limits[1], completions)
    if first >= last:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {last}")
    return Interval(first, last)


def _index(text: str, completions: int) -> int:
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > 18:
        raise IndexesError(f"cannot convert string to integer for index: {quote(text)}")
    if (index := parse_int64(text)) >= completions:
        raise IndexesError(f"too large index: {quote(text)}")
    return index
