"""The parts shared by both policy dispatchers: selection of invocations (one per binding and parameter), compilation of
variables and match conditions, and metrics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.match_conditions import Owner, conditions_hold
from pilothouse.apiserver.admission.matching import Match, Matcher
from pilothouse.apiserver.admission.policy.params import (
    ConfigurationError,
    ParamReader,
    ParamResource,
    collect_params,
)
from pilothouse.apiserver.admission.policy.source import AdmissionPolicy, Hook, PolicyBinding, PolicyCriteria
from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.apiserver.cel.expression import Expression, compiled_variable
from pilothouse.apiserver.cel.match_conditions import MatchConditions
from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally
from pilothouse.machinery.cel.admission import AdmissionCompiler, Declarations
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.status_error import StatusError

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Invocation(Generic[E]):
    policy: AdmissionPolicy[E]
    binding: PolicyBinding
    match: Match
    param: Json | None


@dataclass(frozen=True, slots=True)
class Misconfigured(Generic[E]):
    """A policy that cannot be evaluated for a binding; subject to the failure policy."""

    policy: AdmissionPolicy[E]
    binding: PolicyBinding | None
    message: str


class Invocations(Generic[E]):
    def __init__(self, matcher: Matcher, params: ParamReader) -> None:
        self.matcher = matcher
        self._params = params

    async def of(self, hook: Hook[E], attributes: Attributes) -> list[Invocation[E] | Misconfigured[E]]:
        """Return the invocations in the order of the bindings; empty if the policy does not match."""
        try:
            match = await self._match(attributes, hook.policy.criteria)
            if match is None:
                return []
            resource = await self._param_resource(hook.policy)
        except (ConfigurationError, StatusError) as error:
            return [Misconfigured(hook.policy, None, f"failed to configure policy: {error}")]
        found: list[Invocation[E] | Misconfigured[E]] = []
        for binding in hook.bindings:
            try:
                params = await self._params_of(binding, resource, attributes)
            except (ConfigurationError, StatusError) as error:
                found.append(Misconfigured(hook.policy, binding, f"failed to configure binding: {error}"))
            else:
                found += [Invocation(hook.policy, binding, match, param) for param in params]
        return found

    async def _match(self, attributes: Attributes, criteria: PolicyCriteria) -> Match | None:
        if criteria.match is None:
            raise ConfigurationError(criteria.problem)
        return await self.matcher.matches(attributes, criteria.match)

    async def _param_resource(self, policy: AdmissionPolicy[E]) -> ParamResource | None:
        if policy.param_kind is None:
            return None
        resource = await self._params.resource(policy.param_kind)
        if resource is None:
            raise ConfigurationError(f"failed to find resource referenced by paramKind: '{policy.param_kind}'")
        return resource

    async def _params_of(
        self, binding: PolicyBinding, resource: ParamResource | None, attributes: Attributes
    ) -> list[Json | None]:
        if binding.criteria is not None and await self._match(attributes, binding.criteria) is None:
            return []
        return [*await collect_params(self._params, resource, binding.param_ref, attributes.namespace)]

    async def namespace_of(self, attributes: Attributes) -> Json | None:
        """Return the namespace of the request; None for cluster-scoped objects and Namespaces."""
        if not attributes.namespace or (attributes.kind.group, attributes.kind.kind) == ("", "Namespace"):
            return None
        return await self.matcher.get_namespace(attributes.namespace)


class PolicyDispatcher(ABC, Generic[E]):
    def __init__(self, invocations: Invocations[E], authorizer: Authorizer) -> None:
        self._invocations = invocations
        self._authorizer = authorizer

    @abstractmethod
    async def dispatch(self, hooks: Sequence[Hook[E]], attributes: Attributes) -> None:
        """Evaluate the policies. Raises StatusError to reject."""


class Composition:
    def __init__(self, policy: Json) -> None:
        spec = policy["spec"]
        self.params = spec.get("paramKind") is not None
        self.compiler = AdmissionCompiler(composed=True)
        self.variables: dict[str, Expression] = {
            each["name"]: compiled_variable(self.compiler, each["name"], each["expression"], self.declarations())
            for each in spec.get("variables") or ()
        }
        conditions = spec.get("matchConditions")
        self._conditions = MatchConditions.of_admission(conditions, params=self.params) if conditions else None
        self._owner = Owner(name_of(policy), "policy", "validate", spec.get("failurePolicy") == "Ignore")

    async def is_about(self, seen: VersionedAttributes, params: Json | None, authorizations: Authorizations) -> bool:
        """Return whether the match conditions hold. Raises MatchFailed."""
        if self._conditions is None:
            return True
        return await conditions_hold(self._conditions, seen, self._owner, authorizations, params=params)

    def declarations(self, *, authorizer: bool = True, patch_types: bool = False) -> Declarations:
        return Declarations(params=self.params, authorizer=authorizer, patch_types=patch_types)


class PolicyMetrics:
    """The metrics of a kind of policy; `labels` follow the common labels policy, binding and error type."""

    def __init__(self, kind: str, labels: tuple[str, ...] = (), *, checks: str, seconds: str) -> None:
        prefix = f"apiserver_{kind}_admission_policy_check"
        labels = ("policy", "policy_binding", "error_type", *labels)
        self._checks = CounterTally(f"{prefix}_total", checks, labels, registry=REGISTRY)
        bounds = (0.0000005, 0.001, 0.01, 0.1, 1.0)
        self._seconds = HistogramTally(f"{prefix}_duration_seconds", seconds, labels, bounds=bounds, registry=REGISTRY)

    def observe(self, labels: tuple[str, ...], seconds: float) -> None:
        self._checks.inc(labels)
        self._seconds.observe(labels, seconds)


VALIDATING = PolicyMetrics(
    "validating",
    ("enforcement_action",),
    checks="[BETA] Validation admission policy check total, labeled by policy and further identified by binding and "
    "enforcement action taken.",
    seconds="[BETA] Validation admission latency for individual validation expressions in seconds, labeled by policy "
    "and further including binding and enforcement action taken.",
)
"""Enforcement actions: allow, deny, audit and warn."""

MUTATING = PolicyMetrics(
    "mutating",
    checks="Mutations by mutating admission policies, by policy, binding and what went wrong.",
    seconds="How long single mutations by mutating admission policies take, with the labels of the checks.",
)
