"""The policies in force, stored and static. Unbound policies and dangling bindings have no effect.

Selectors are compiled on read, expressions on first use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Generic, Protocol, TypeAlias, TypeVar

from pilothouse.apiserver.admission.interface import NOT_YET_READY, Attributes, refused
from pilothouse.apiserver.admission.matching import REVIEWS, MatchCriteria
from pilothouse.apiserver.storage.errors import CacheNotReady
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


T_co = TypeVar("T_co", covariant=True)

_POLICY_RESOURCES = frozenset(
    ("admissionregistration.k8s.io", f"{how}admission{what}")
    for how in ("validating", "mutating")
    for what in ("policies", "policybindings")
)
"""Exempt from API-based policies, so that a wrong policy can be removed."""


class ObjectSource(Protocol[T_co]):
    """All stored objects of a resource; the same sequence until a change."""

    async def all(self) -> Sequence[T_co]:
        """Return all objects. Raises CacheNotReady."""


class PolicySource(Generic[E]):
    _policies: Sequence[AdmissionPolicy[E]]  # input of the cached hooks
    _bindings: Sequence[PolicyBinding]

    def __init__(
        self,
        policies: ObjectSource[AdmissionPolicy[E]],
        bindings: ObjectSource[PolicyBinding],
        static: Callable[[], Sequence[Hook[E]]],
    ) -> None:
        self._stored_policies, self._stored_bindings = policies, bindings
        self._static = static
        self._policies, self._bindings = (), ()
        self._hooks: Sequence[Hook[E]] = ()

    async def hooks(self, attributes: Attributes) -> Sequence[Hook[E]]:
        """Return the hooks: static policies first, then by policy name, each with bindings sorted by name. Raises
        Forbidden until the policies are loaded."""
        resource = (attributes.resource.group, attributes.resource.resource)
        if resource in REVIEWS:
            return ()
        static = self._static()
        if resource in _POLICY_RESOURCES:
            return static
        try:
            policies, bindings = await self._stored_policies.all(), await self._stored_bindings.all()
        except CacheNotReady:
            raise refused(attributes, NOT_YET_READY) from None
        if policies is not self._policies or bindings is not self._bindings:
            self._hooks = bound_hooks(policies, bindings)
            self._policies, self._bindings = policies, bindings
        stored = self._hooks
        return [*static, *stored] if static else stored


def bound_hooks(policies: Sequence[AdmissionPolicy[E]], bindings: Sequence[PolicyBinding]) -> Sequence[Hook[E]]:
    bound: dict[str, list[PolicyBinding]] = defaultdict(list)
    for binding in bindings:
        bound[binding.policy_name].append(binding)
    return [Hook(policy, bound[policy.name]) for policy in policies if policy.name in bound]


@dataclass(frozen=True, slots=True)
class PolicyManifests:
    """Static policies and bindings, sorted by name."""

    policies: tuple[Json, ...] = ()
    bindings: tuple[Json, ...] = ()


GetPolicyManifests: TypeAlias = Callable[[], PolicyManifests]
"""Return the manifests; the same object until a change."""

_NONE = PolicyManifests()


def no_policy_manifests() -> PolicyManifests:
    return _NONE


class StaticPolicies(Generic[E]):
    def __init__(self, get: GetPolicyManifests, compile: Callable[[Json], E]) -> None:
        self._get, self._compile = get, compile
        self._of = _NONE
        self._hooks: Sequence[Hook[E]] = ()

    def __call__(self) -> Sequence[Hook[E]]:
        manifests = self._get()
        if manifests is not self._of:
            policies = [AdmissionPolicy(policy, self._compile) for policy in manifests.policies]
            self._hooks = bound_hooks(policies, [PolicyBinding.of(binding) for binding in manifests.bindings])
            self._of = manifests
        return self._hooks
