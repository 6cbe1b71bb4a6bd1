"""MatchResources and parameters, shared by policies and bindings."""

from __future__ import annotations

from pilothouse.apiserver.registry.table import Column
from pilothouse.kube.admissionregistration.rules import default_rules, validate_named_rule
from pilothouse.kube.validation.fields import follow, one_of
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.labels import validate_label_selector
from pilothouse.machinery.validation.names import is_dns1035_label, is_dns1123_subdomain, is_kind_name
from pilothouse.machinery.validation.object_names import is_valid_path_segment_name

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
REINVOCATION_POLICIES = ("IfNeeded", "Never")
SELECTORS = ("namespaceSelector", "objectSelector")

_EXCLUSIVE = "name and selector are mutually exclusive"
_NOT_FOUND_ACTIONS = ("Deny", "Allow")


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
        yield from follow(is_kind_name, name, path.child("kind"))


def _validate_param_version(api_version: str, path: Path) -> Errors:
    if not api_version:
        yield required(path)
        return
    try:
        parsed = GroupVersion("", "") if api_version == "/" else GroupVersion.parse(api_version)
    except ValueError as error:
        yield invalid(path, api_version, str(error))
        return
    if parsed.group and (problems := is_dns1123_subdomain(parsed.group)):
        yield invalid(path, parsed.group, ",".join(problems))
    if not parsed.version:
        yield invalid(path, api_version, "version must be specified")
    elif problems := is_dns1035_label(parsed.version):
        yield invalid(path, parsed.version, ",".join(problems))


def validate_param_ref(reference: Json | None, path: Path) -> Errors:
    if reference is None:
        return
    name, selector = text(reference, "name"), reference.get("selector")
    if name:
        yield from follow(is_valid_path_segment_name, name, path.child("name"))
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
