"""ValidatingAdmissionPolicyBindings and MutatingAdmissionPolicyBindings: scope and parameters of a policy."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.registry.table import Column
from pilothouse.kube.admissionregistration import match_resources, strategy
from pilothouse.kube.validation.fields import follow, one_of
from pilothouse.machinery.field import (
    Errors,
    Path,
    declared,
    duplicate,
    invalid,
    required,
    root,
)
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.names import name_is_dns_subdomain

_ACTIONS = ("Audit", "Deny", "Warn")
_DENY_AND_WARN = (
    "must not contain both Deny and Warn "
    "(repeating the same validation failure information in the API response and headers serves no purpose)"
)


class PolicyBindingStrategy(strategy.AdmissionRegistrationStrategy):
    def default(self, obj: Json) -> None:
        match_resources.default_match_resources(part(obj, "spec").get("matchResources"))

    def validate_configuration(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        spec, path = part(obj, "spec"), root("spec")
        if name := text(spec, "policyName"):
            yield from follow(name_is_dns_subdomain, name, path.child("policyName"))
        else:
            yield declared(required(path.child("policyName")))
        yield from match_resources.validate_param_ref(spec.get("paramRef"), path.child("paramRef"))
        yield from match_resources.validate_match_resources(spec.get("matchResources"), path.child("matchResources"))
        yield from self.validate_own(spec, path)

    def validate_own(self, spec: Json, path: Path) -> Errors:
        """Yield errors of fields specific to one kind of binding."""
        raise NotImplementedError

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self.validate_configuration(obj)


class ValidatingBindingStrategy(PolicyBindingStrategy):
    def validate_own(self, spec: Json, path: Path) -> Errors:
        return _validate_actions(items(spec, "validationActions"), path.child("validationActions"))


class MutatingBindingStrategy(PolicyBindingStrategy):
    def validate_own(self, spec: Json, path: Path) -> Errors:
        rules = items(spec, "matchResources", "resourceRules")
        return match_resources.validate_mutating_operations(
            rules, path.child("matchResources", "resourceRules", "operations")
        )


def _validate_actions(actions: Sequence[str], path: Path) -> Errors:
    seen: set[str] = set()
    for position, action in enumerate(actions):
        yield from one_of(action, path.index(position), _ACTIONS)
        if action in seen:
            yield duplicate(path.index(position), action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        yield invalid(path, actions, _DENY_AND_WARN)
    if not actions:
        yield declared(required(path, "at least one validation action is required"), place=2)


def _params(obj: Json) -> str:
    reference = part(obj, "spec").get("paramRef")
    if reference is None:
        return "<unset>"
    if name := text(reference, "name"):
        return f"{text(reference, 'namespace') or '*'}/{name}"
    selector = reference.get("selector")
    return "<unset>" if selector is None else _printed_selector(selector)


def _printed_selector(selector: Json) -> str:
    """Format a LabelSelector as Go's %v does."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(_printed_requirement(expression) for expression in items(selector, "matchExpressions"))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _printed_requirement(requirement: Json) -> str:
    key, operator = text(requirement, "key"), text(requirement, "operator")
    values = " ".join(items(requirement, "values"))
    return f"LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"


_COLUMNS = [
    Column(
        "PolicyName",
        lambda obj: text(obj, "spec", "policyName"),
        description="PolicyName indicates the policy definition which the policy binding binded to",
    ),
    Column(
        "ParamRef",
        _params,
        description="ParamRef indicates the param resource which sets the configuration param",
        versions="1.35+",
    ),
    Column(
        "ParamRef",
        _params,
        description="ParamRef indicates the param resource which sets the configration param",
        versions="1.34-",
    ),
]

VALIDATING_ADMISSION_POLICY_BINDINGS = strategy.resource_of(
    "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", ValidatingBindingStrategy(), _COLUMNS
)
MUTATING_ADMISSION_POLICY_BINDINGS = strategy.resource_of(
    "mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding",
    MutatingBindingStrategy(),
    _COLUMNS,
    strategy.STORED_MUTATING_VERSION,
)
