"""Selection of policy invocations for a request: one per binding and parameter."""

from __future__ import annotations

from typing import Generic, TypeVar

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.matching.matcher import Match, Matcher
from pilothouse.apiserver.admission.policy.hooks import AdmissionPolicy, Hook, PolicyBinding, PolicyCriteria
from pilothouse.apiserver.admission.policy.params import (
    ConfigurationError,
    ParamReader,
    ParamResource,
    collect_params,
)
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
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
