"""Compiled policies and bindings: selectors are compiled on read, expressions on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Generic, TypeVar

from pilothouse.apiserver.admission.matching.criteria import MatchCriteria
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.selectors.requirement import InvalidSelector

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class PolicyCriteria:
    """Match criteria, or the error of their compilation."""

    match: MatchCriteria | None = None
    problem: str = ""

    @classmethod
    def of(cls, resources: Json) -> PolicyCriteria:
        try:
            return cls(MatchCriteria.of_match_resources(resources))
        except InvalidSelector as error:
            return cls(problem=str(error))


class AdmissionPolicy(Generic[E]):
    """A policy; `compile` builds its evaluator."""

    def __init__(self, obj: Json, compile: Callable[[Json], E]) -> None:
        self.obj = obj
        self.name = name_of(obj)
        self._compile = compile
        spec = obj.get("spec") or {}
        self.fails_open = spec.get("failurePolicy") == "Ignore"
        self.criteria = PolicyCriteria.of(spec.get("matchConstraints") or {})
        self.param_kind = _param_kind(spec.get("paramKind"))

    @cached_property
    def evaluator(self) -> E:
        return self._compile(self.obj)


@dataclass(frozen=True, slots=True)
class PolicyBinding:
    name: str
    policy_name: str
    criteria: PolicyCriteria | None
    """None: the binding does not narrow the policy's criteria."""
    param_ref: Json | None = None
    actions: tuple[str, ...] = ()

    @classmethod
    def of(cls, obj: Json) -> PolicyBinding:
        spec = obj.get("spec") or {}
        resources = spec.get("matchResources")
        return cls(
            name_of(obj),
            spec.get("policyName") or "",
            None if resources is None else PolicyCriteria.of(resources),
            spec.get("paramRef"),
            tuple(spec.get("validationActions") or ()),
        )


@dataclass(frozen=True, slots=True)
class Hook(Generic[E]):
    """A policy with its bindings."""

    policy: AdmissionPolicy[E]
    bindings: Sequence[PolicyBinding]


def _param_kind(kind: Json | None) -> GroupVersionKind | None:
    if kind is None:
        return None
    api_version = kind.get("apiVersion") or ""
    try:
        return GroupVersion.parse(api_version).kind(kind.get("kind") or "")
    except ValueError:
        # Unknown kind: the later lookup reports the error.
        return GroupVersionKind("", api_version, kind.get("kind") or "")
