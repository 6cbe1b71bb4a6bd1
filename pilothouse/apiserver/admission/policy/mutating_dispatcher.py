"""Sequential dispatch to mutating policies: each policy sees the changes of its predecessors.

Matching policies are selected before the first mutation.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pilothouse.apiserver.admission.interface import Attributes, ServedForm, refused
from pilothouse.apiserver.admission.policy.invocations import MUTATING, Invocation, Misconfigured, PolicyDispatcher
from pilothouse.apiserver.admission.policy.mutator import Mutation, MutationFailed, Mutator
from pilothouse.apiserver.admission.policy.source import Hook
from pilothouse.apiserver.admission.previously_invoked import PreviouslyInvoked
from pilothouse.apiserver.admission.versioned import VersionedAttributes, admission_variables, admit_change, versioned
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.machinery.codec.json import canonical_json
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden, Invalid
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.server_errors import ServiceUnavailable
from pilothouse.machinery.status_error import StatusError

NAME = "MutatingAdmissionPolicy"


@dataclass(frozen=True, slots=True)
class _Round:
    """State shared by all policies in a round of a request."""

    attributes: Attributes
    namespace: Json | None
    authorizations: Authorizations
    state: PreviouslyInvoked

    def variables(self, seen: VersionedAttributes, invocation: Invocation[Mutator]) -> dict[str, Any]:
        return admission_variables(
            seen,
            resource=invocation.match.resource,
            namespace=self.namespace,
            params=invocation.param,
            authorizations=self.authorizations,
        )


class MutatingDispatcher(PolicyDispatcher[Mutator]):
    async def dispatch(self, hooks: Sequence[Hook[Mutator]], attributes: Attributes) -> None:
        """Apply the matching policies. Raises StatusError to reject."""
        found = [each for hook in hooks for each in await self._invocations.of(hook, attributes)]
        if not found:
            return
        errors = [_error(each) for each in found if isinstance(each, Misconfigured) and not each.policy.fails_open]
        errors += await self._invoke([each for each in found if isinstance(each, Invocation)], attributes)
        if errors:
            # Code 403 with any reason.
            details = {
                **(refused(attributes, "").details or {}),
                "causes": [{"message": each.message} for each in errors],
            }
            kind: type[StatusError] = Invalid if errors[0].invalid else Forbidden
            raise kind(errors[0].message, code=Forbidden.code, details=details)

    async def _invoke(self, invocations: Sequence[Invocation[Mutator]], attributes: Attributes) -> list[_Error]:
        if not invocations:
            return []
        again = attributes.reinvocation
        state = again.value(NAME, PreviouslyInvoked)
        if again.is_reinvoke:
            state.notice_other_changes(attributes.obj)
        namespace = await self._invocations.namespace_of(attributes)
        round = _Round(attributes, namespace, Authorizations(self._authorizer, attributes.user), state)
        errors: list[_Error] = []
        try:
            for invocation in invocations:
                errors += await _mutate(round, invocation)
            if again.should_reinvoke:
                # As upstream: the mutating policy itself is reinvoked too, because its own change counts as a later
                # change.
                state.changed()
        finally:
            state.leave(attributes.obj)
        return errors


@dataclass(frozen=True, slots=True)
class _Error:
    message: str
    invalid: bool = False


def _error(misconfigured: Misconfigured[Mutator]) -> _Error:
    name, binding = misconfigured.policy.name, misconfigured.binding
    who = f'policy "{name}"' if binding is None else f"policy '{name}' with binding '{binding.name}'"
    return _Error(f"{who} denied request: {misconfigured.message}")


def _failure(invocation: Invocation[Mutator], error: MutationFailed) -> list[_Error]:
    if invocation.policy.fails_open:
        return []
    who = f"policy '{invocation.policy.name}' with binding '{invocation.binding.name}'"
    return [_Error(f"{who} denied request: {error}", invalid=True)]


async def _mutate(round: _Round, invocation: Invocation[Mutator]) -> list[_Error]:
    """Apply a policy and return its errors. Raises StatusError for errors outside of the failure policy."""
    attributes, mutator = round.attributes, invocation.policy.evaluator
    seen = await versioned(attributes, invocation.match)
    try:
        if not await mutator.is_about(seen, invocation.param, round.authorizations):
            return []
    except MutationFailed as error:
        return _failure(invocation, error)
    param = invocation.param or {}
    key = (invocation.policy.name, invocation.binding.name, namespace_of(param), name_of(param))
    if attributes.reinvocation.is_reinvoke and not round.state.is_due(key):
        return []
    before = canonical_json(attributes.obj)
    errors = [error for mutation in mutator.mutations for error in await _mutate_once(round, invocation, mutation)]
    if canonical_json(attributes.obj) != before:
        round.state.changed()
    if mutator.reinvocable:
        round.state.called(key)
    return errors


async def _mutate_once(round: _Round, invocation: Invocation[Mutator], mutation: Mutation) -> list[_Error]:
    seen = await versioned(round.attributes, invocation.match)
    if seen.obj is None:
        return []
    start, error_type = time.perf_counter(), "no_error"
    try:
        form = _form(seen)
        new = await mutation.mutated(form, seen.obj, round.variables(seen, invocation), round.authorizations)
        await admit_change(seen, new)
    except MutationFailed as error:
        error_type = error.error_type
        return _failure(invocation, error)
    except StatusError:
        error_type = "invalid_error"
        raise
    finally:
        labels = (invocation.policy.name, invocation.binding.name, error_type)
        MUTATING.observe(labels, time.perf_counter() - start)
    # Also for an unchanged object.
    round.attributes.reinvocation.should_reinvoke = True
    return []


def _form(seen: VersionedAttributes) -> ServedForm:
    form = seen.attributes.equivalents.form(seen.match.resource, seen.attributes.subresource)
    if form is None:
        reason = "There can be a delay between when CustomResourceDefinitions are created and when they are available."
        raise ServiceUnavailable(f"Resource kind {seen.kind} not found. {reason}")
    return form
