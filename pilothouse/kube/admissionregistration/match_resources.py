"""MatchResources, rules and parameters, shared by policies, bindings and webhook configurations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.apiserver.registry.table import Column
from pilothouse.kube.validation.fields import follow, one_of
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, not_supported, required
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation import names
from pilothouse.machinery.validation.labels import validate_label_selector

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
REINVOCATION_POLICIES = ("IfNeeded", "Never")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
SELECTORS = ("namespaceSelector", "objectSelector")
_EXCLUSIVE = "name and selector are mutually exclusive"
_NOT_FOUND_ACTIONS = ("Deny", "Allow")
_SCOPES = ("*", "Cluster", "Namespaced")


def default_selection(part_of_policy: Json) -> None:
    """Equivalent kinds match, and nothing is left out by labels."""
    if part_of_policy.get("matchPolicy") is None:
        part_of_policy["matchPolicy"] = "Equivalent"
    for selector in SELECTORS:
        if part_of_policy.get(selector) is None:
            part_of_policy[selector] = {}


def default_match_resources(match: Json | None) -> None:
    if match is not None:
        default_selection(match)
        default_rules(items(match, "resourceRules"))
        default_rules(items(match, "excludeResourceRules"))


def validate_match_resources(match: Json | None, path: Path) -> Errors:
    if match is None:
        return
    if match.get("matchPolicy") is None:
        yield required(path.child("matchPolicy"))
    else:
        yield from one_of(match["matchPolicy"], path.child("matchPolicy"), MATCH_POLICIES)
    for selector in SELECTORS:
        if match.get(selector) is None:
            yield required(path.child(selector))
        else:
            yield from validate_label_selector(match[selector], path.child(selector))
    for field in ("resourceRules", "excludeResourceRules"):
        for position, rule in enumerate(items(match, field)):
            yield from validate_named_rule(rule, path.child(field).index(position))


def validate_match_constraints(match: Json | None, path: Path) -> Errors:
    """Validate a policy's constraints. Resource rules are required, because they determine the types of expressions."""
    if match is None:
        yield required(path)
        return
    yield from validate_match_resources(match, path)
    if not items(match, "resourceRules"):
        yield required(path.child("resourceRules"))


def validate_param_kind(kind: Json, path: Path) -> Errors:
    yield from _validate_param_version(text(kind, "apiVersion"), path.child("apiVersion"))
    name = text(kind, "kind")
    if not name:
        yield required(path.child("kind"))
    else:
        yield from follow(names.is_kind_name, name, path.child("kind"))


def _validate_param_version(api_version: str, path: Path) -> Errors:
    if not api_version:
        yield required(path)
        return
    try:
        parsed = GroupVersion("", "") if api_version == "/" else GroupVersion.parse(api_version)
    except ValueError as error:
        yield invalid(path, api_version, str(error))
        return
    if parsed.group and (problems := names.is_dns1123_subdomain(parsed.group)):
        yield invalid(path, parsed.group, ",".join(problems))
    if not parsed.version:
        yield invalid(path, api_version, "version must be specified")
    elif problems := names.is_dns1035_label(parsed.version):
        yield invalid(path, parsed.version, ",".join(problems))


def validate_param_ref(reference: Json | None, path: Path) -> Errors:
    if reference is None:
        return
    name, selector = text(reference, "name"), reference.get("selector")
    if name:
        yield from follow(names.is_valid_path_segment_name, name, path.child("name"))
        if selector is not None:
            yield forbidden(path.child("name"), _EXCLUSIVE)
    if selector is not None:
        yield from validate_label_selector(selector, path.child("selector"))
        if name:
            yield forbidden(path.child("selector"), _EXCLUSIVE)
    elif not name:
        yield required(path, "one of name or selector must be specified")
    action = text(reference, "parameterNotFoundAction")
    if not action:
        yield required(path.child("parameterNotFoundAction"))
    elif action not in _NOT_FOUND_ACTIONS:
        yield not_supported(path.child("parameterNotFoundAction"), action, _NOT_FOUND_ACTIONS)


def validate_failure_policy(policy: str | None, path: Path) -> Errors:
    if policy is None:
        yield required(path)
    else:
        yield from one_of(policy, path, FAILURE_POLICIES)


def _param_kind(obj: Json) -> str:
    kind = part(obj, "spec").get("paramKind")
    return "<unset>" if kind is None else f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}"


PARAM_KIND = Column(
    "ParamKind",
    _param_kind,
    description="ParamKind specifies the kind of resources used to parameterize this policy",
)


def default_rules(rules: Iterable[Json]) -> None:
    for rule in rules:
        if rule.get("scope") is None:
            rule["scope"] = "*"


def validate_named_rule(rule: Json, path: Path) -> Errors:
    """Validate a rule with optional resource names."""
    seen: set[str] = set()
    for position, name in enumerate(items(rule, "resourceNames")):
        where = path.child("resourceNames").index(position)
        for message in names.is_valid_path_segment_name(name):
            yield invalid(where, name, message)
        if name in seen:
            yield duplicate(where, name)
        seen.add(name)
    yield from validate_rule(rule, path)


def validate_rule(rule: Json, path: Path) -> Errors:
    operations = items(rule, "operations")
    operations_path = path.child("operations")
    yield from _validate_choice(operations, operations_path, "operations")
    for position, operation in enumerate(operations):
        yield from one_of(operation, operations_path.index(position), OPERATIONS)
    yield from _validate_choice(items(rule, "apiGroups"), path.child("apiGroups"), "API groups")
    yield from _validate_choice(items(rule, "apiVersions"), path.child("apiVersions"), "API versions")
    for position, version in enumerate(items(rule, "apiVersions")):
        if not version:
            yield required(path.child("apiVersions").index(position))
    resources = items(rule, "resources")
    resources_path = path.child("resources")
    if not resources:
        yield required(resources_path)
    yield from _validate_subresources(resources, resources_path)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(resources_path, resources, "if '*/*' is present, must not specify other resources")
    plain = [resource for resource in resources if resource and "/" not in resource]
    # As upstream does, only the last resource without a subresource counts.
    if "*" in plain and plain[-1] != "*":
        reason = "if '*' is present, must not specify other resources without subresources"
        yield invalid(resources_path, resources, reason)
    if rule.get("scope") is not None:
        yield from one_of(rule["scope"], path.child("scope"), _SCOPES)


def validate_mutating_operations(rules: Iterable[Json], path: Path) -> Errors:
    """Reject DELETE: a deletion cannot be mutated."""
    for rule in rules:
        for operation in items(rule, "operations"):
            if operation not in MUTATING_OPERATIONS:
                yield not_supported(path, operation, MUTATING_OPERATIONS)


def _validate_choice(values: Sequence[str], path: Path, what: str) -> Errors:
    if not values:
        yield required(path)
    if len(values) > 1 and "*" in values:
        yield invalid(path, values, f"if '*' is present, must not specify other {what}")


def _validate_subresources(resources: Sequence[str], path: Path) -> Errors:
    """Reject resources covered by `pods/*` or `*/status`."""
    with_any_subresource: set[str] = set()
    of_any_resource: set[str] = set()
    for position, entry in enumerate(resources):
        if not entry:
            yield required(path.index(position))
            continue
        resource, slash, subresource = entry.partition("/")
        if not slash:
            continue
        if resource in with_any_subresource:
            yield invalid(path.index(position), entry, f"if '{resource}/*' is present, must not specify {entry}")
        if subresource in of_any_resource:
            yield invalid(path.index(position), entry, f"if '*/{subresource}' is present, must not specify {entry}")
        if subresource == "*":
            with_any_subresource.add(resource)
        if resource == "*":
            of_any_resource.add(subresource)
