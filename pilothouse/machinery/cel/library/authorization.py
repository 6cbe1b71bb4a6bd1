"""Functions of the `authorizer` variable."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.machinery.cel.authorizer import AuthorizerValue, GroupCheck, PathCheck, ResourceCheck
from pilothouse.machinery.cel.library import costs
from pilothouse.machinery.cel.library.rows import row


def _narrow(part: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    return lambda check, value: check.narrowed(part, value)


AUTHORIZATION = (
    row("authorizer_path", "Authorizer -> path(string) PathCheck", AuthorizerValue.path),
    row("authorizer_group", "Authorizer -> group(string) GroupCheck", AuthorizerValue.group),
    row(
        "authorizer_serviceaccount",
        "Authorizer -> serviceAccount(string, string) Authorizer",
        AuthorizerValue.service_account,
    ),
    row("groupcheck_resource", "GroupCheck -> resource(string) ResourceCheck", GroupCheck.resource),
    row("resourcecheck_subresource", "ResourceCheck -> subresource(string) ResourceCheck", _narrow("subresource")),
    row("resourcecheck_namespace", "ResourceCheck -> namespace(string) ResourceCheck", _narrow("namespace")),
    row("resourcecheck_name", "ResourceCheck -> name(string) ResourceCheck", _narrow("name")),
    row(
        "pathcheck_check",
        "PathCheck -> check(string) Decision",
        PathCheck.check,
        cost=costs.authorized,
        named_cost=True,
        estimate=costs.authorized_estimate,
    ),
    row(
        "resourcecheck_check",
        "ResourceCheck -> check(string) Decision",
        ResourceCheck.check,
        cost=costs.authorized,
        named_cost=True,
        estimate=costs.authorized_estimate,
    ),
    row("decision_errored", "Decision -> errored() bool", lambda decision: decision.error is not None),
    row("decision_error", "Decision -> error() string", lambda decision: decision.error or ""),
    row("decision_allowed", "Decision -> allowed() bool", lambda decision: decision.allowed),
    row("decision_reason", "Decision -> reason() string", lambda decision: decision.reason),
    row(
        "authorizer_fieldselector",
        "ResourceCheck -> fieldSelector(string) ResourceCheck",
        _narrow("field_selector"),
        cost=costs.selector,
        named_cost=True,
        estimate=costs.selector_estimate,
    ),
    row(
        "authorizer_labelselector",
        "ResourceCheck -> labelSelector(string) ResourceCheck",
        _narrow("label_selector"),
        cost=costs.selector,
        named_cost=True,
        estimate=costs.selector_estimate,
    ),
)
