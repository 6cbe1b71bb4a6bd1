"""FlowSchemas: assignment of requests to priority levels."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.flowcontrol.mandatory import EXEMPT, MANDATORY_SCHEMAS
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.flowcontrol.priority_levels import GROUP, FlowControlStatus, validate_status
from pilothouse.kube.strategy import SpecAndStatusStrategy
from pilothouse.kube.validation.fields import follow, non_empty
from pilothouse.kube.validation.internal_structs import ANY, FLAG, NUMBER, TEXT, pointer, slice_of, struct
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, items, name_of, number, part, text
from pilothouse.machinery.validation.immutable import semantically_equal
from pilothouse.machinery.validation.names import name_is_dns_label, name_is_dns_subdomain

_DEFAULT_PRECEDENCE = 1000
_MAX_PRECEDENCE = 10000
_DISTINGUISHERS = ("ByNamespace", "ByUser")

_method = pointer(struct(Type=TEXT))
_name = pointer(struct(Name=TEXT))
_shown_spec = struct(
    PriorityLevelConfiguration=struct(Name=TEXT),
    MatchingPrecedence=NUMBER,
    DistinguisherMethod=_method,
    Rules=slice_of(
        struct(
            Subjects=slice_of(
                struct(Kind=TEXT, User=_name, Group=_name, ServiceAccount=pointer(struct(Namespace=TEXT, Name=TEXT)))
            ),
            ResourceRules=slice_of(struct(Verbs=ANY, APIGroups=ANY, Resources=ANY, ClusterScope=FLAG, Namespaces=ANY)),
            NonResourceRules=slice_of(struct(Verbs=ANY, NonResourceURLs=ANY)),
        )
    ),
)

_TYPES = "io.k8s.api.flowcontrol.v1."

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")

_SUBJECT_FIELDS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}

_FORBIDDEN_ORDER = {
    "ServiceAccount": ("User", "Group"),
    "User": ("ServiceAccount", "Group"),
    "Group": ("ServiceAccount", "User"),
}

_NAMESPACE_INTRO = "each member of this list must be '*' or a DNS-1123 label; "


class FlowSchemaStrategy(SpecAndStatusStrategy):
    kind = GroupVersionKind(GROUP, "v1", "FlowSchema")
    namespaced = False
    validates_updates_as_creates = True

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or _DEFAULT_PRECEDENCE

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        name, spec = name_of(obj), part(obj, "spec")
        path = root("spec")
        precedence = number(spec, "matchingPrecedence")
        matching_precedence_path = path.child("matchingPrecedence")
        if precedence <= 0:
            yield invalid(matching_precedence_path, precedence, "must be a positive value")
        if precedence > _MAX_PRECEDENCE:
            yield invalid(matching_precedence_path, precedence, f"must not be greater than {_MAX_PRECEDENCE}")
        if precedence == 1 and name != EXEMPT:
            yield invalid(
                matching_precedence_path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"
            )
        method = spec.get("distinguisherMethod")
        if method is not None and method.get("type") not in _DISTINGUISHERS:
            yield not_supported(path.child("distinguisherMethod", "type"), _method(method), _DISTINGUISHERS)
        level, where = (
            text(spec, "priorityLevelConfiguration", "name"),
            path.child("priorityLevelConfiguration", "name"),
        )
        if level:
            yield from follow(name_is_dns_subdomain, level, where)
        else:
            yield required(where, "must reference a priority level")
        for position, rule in enumerate(items(spec, "rules")):
            yield from validate_rule(rule, path.child("rules").index(position))
        fixed = MANDATORY_SCHEMAS.get(name)
        if fixed is not None and not semantically_equal(spec, fixed):
            yield invalid(root("spec"), _shown_spec(spec), f"spec of '{name}' must equal the fixed value")
        yield from validate_status(obj)


class FlowSchemaStatusStrategy(FlowControlStatus, FlowSchemaStrategy):
    pass


def _is_dangling(obj: Json) -> str:
    conditions = items(obj, "status", "conditions")
    return next((text(condition, "status") for condition in conditions if condition.get("type") == "Dangling"), "?")


def _distinguisher(obj: Json) -> str:
    method = part(obj, "spec").get("distinguisherMethod")
    return "<none>" if method is None else text(method, "type")


FLOW_SCHEMAS = Resource(
    names=Names("flowschemas", kind="FlowSchema"),
    strategy=FlowSchemaStrategy(),
    status=FlowSchemaStatusStrategy(),
    group=GROUP,
    row_order=lambda obj: (number(obj, "spec", "matchingPrecedence"), name_of(obj)),
    columns=[
        NAME,
        Column(
            "PriorityLevel",
            lambda obj: text(obj, "spec", "priorityLevelConfiguration", "name"),
            documented=(_TYPES + "PriorityLevelConfigurationReference", "name"),
        ),
        Column(
            "MatchingPrecedence",
            lambda obj: number(obj, "spec", "matchingPrecedence"),
            documented=(_TYPES + "FlowSchemaSpec", "matchingPrecedence"),
        ),
        Column(
            "DistinguisherMethod",
            _distinguisher,
            documented=(_TYPES + "FlowSchemaSpec", "distinguisherMethod"),
        ),
        AGE,
        Column(
            "MissingPL",
            _is_dangling,
            description="references a broken or non-existent PriorityLevelConfiguration",
        ),
    ],
)


def validate_rule(rule: Json, path: Path) -> Errors:
    for position, subject in enumerate(items(rule, "subjects")):
        yield from _validate_subject(subject, path.child("subjects").index(position))
    if not items(rule, "subjects"):
        yield required(path.child("subjects"), "subjects must contain at least one value")
    if not items(rule, "resourceRules") and not items(rule, "nonResourceRules"):
        yield required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for position, each in enumerate(items(rule, "resourceRules")):
        resource_rule_path = path.child("resourceRules").index(position)
        yield from _validate_verbs(items(each, "verbs"), resource_rule_path.child("verbs"))
        for field, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
            values = items(each, field)
            if not values:
                yield required(resource_rule_path.child(field), f"resource rules must supply at least one {one}")
            else:
                yield from _validate_wildcard(values, resource_rule_path.child(field), many)
        yield from _validate_namespaces(each, resource_rule_path.child("namespaces"))
    for position, each in enumerate(items(rule, "nonResourceRules")):
        yield from _validate_non_resource_rule(each, path.child("nonResourceRules").index(position))


def _validate_subject(subject: Json, path: Path) -> Errors:
    kind = text(subject, "kind")
    if kind not in _SUBJECT_FIELDS:
        yield not_supported(path.child("kind"), kind, sorted(_SUBJECT_FIELDS))
        return
    field = _SUBJECT_FIELDS[kind]
    details = subject.get(field)
    if details is None:
        yield required(path.child(field), f"{field} is required when subject kind is '{kind}'")
    elif kind == "ServiceAccount":
        yield from _validate_service_account(details, path.child(field))
    else:
        yield from non_empty(details.get("name"), path.child(field, "name"))
    for other in _FORBIDDEN_ORDER[kind]:
        field = _SUBJECT_FIELDS[other]
        if subject.get(field) is not None:
            yield forbidden(path.child(field), f"{field} is forbidden when subject kind is not '{other}'")


def _validate_service_account(account: Json, path: Path) -> Errors:
    name, namespace = text(account, "name"), text(account, "namespace")
    if not name:
        yield required(path.child("name"))
    elif name != "*":
        yield from follow(name_is_dns_subdomain, name, path.child("name"))
    if namespace:
        yield from follow(name_is_dns_label, namespace, path.child("namespace"))
    else:
        yield required(path.child("namespace"), "must specify namespace for service account")


def _validate_namespaces(rule: Json, path: Path) -> Errors:
    namespaces = items(rule, "namespaces")
    if not namespaces and not rule.get("clusterScope"):
        yield required(path, "resource rules that are not cluster scoped must supply at least one namespace")
    elif "*" in namespaces:
        yield from _validate_wildcard(namespaces, path, "namespaces")
    else:
        for position, namespace in enumerate(namespaces):
            for message in name_is_dns_label(namespace):
                yield invalid(path.index(position), namespace, _NAMESPACE_INTRO + message)


def _validate_non_resource_rule(rule: Json, path: Path) -> Errors:
    yield from _validate_verbs(items(rule, "verbs"), path.child("verbs"))
    urls, where = items(rule, "nonResourceURLs"), path.child("nonResourceURLs")
    if not urls:
        yield required(where, "nonResourceURLs must contain at least one value")
    elif "*" in urls:
        yield from _validate_wildcard(urls, where, "non-resource URLs")
    else:
        for position, url in enumerate(urls):
            if problem := _url_problem(url):
                yield invalid(where.index(position), url, problem)


def _validate_verbs(verbs: Sequence[str], path: Path) -> Errors:
    if not verbs:
        yield required(path, "verbs must contain at least one value")
    elif "*" in verbs:
        yield from _validate_wildcard(verbs, path, "verbs")
    elif not set(verbs) <= set(_VERBS):
        yield not_supported(path, verbs, _VERBS)


def _validate_wildcard(values: Sequence[str], path: Path, what: str) -> Errors:
    if "*" in values and len(values) > 1:
        yield invalid(path, values, f"if '*' is present, must not specify other {what}")


def _url_problem(url: str) -> str:
    """Return the problem with a path or path prefix, or an empty string."""
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    problems = {
        "must start with slash": not url.startswith("/"),
        "must not contain white-space": " " in url,
        "must not contain double slash": "//" in url,
        "wildcard can only do suffix matching": "*" in url.removesuffix("/*"),
    }
    return next((message for message, wrong in problems.items() if wrong), "")
