"""The rules of a FlowSchema: whose requests, for what."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kube.validation.fields import follow, non_empty
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Json, items, text
from pilothouse.machinery.validation.object_names import name_is_dns_label, name_is_dns_subdomain

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECT_FIELDS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_FORBIDDEN_ORDER = {
    "ServiceAccount": ("User", "Group"),
    "User": ("ServiceAccount", "Group"),
    "Group": ("ServiceAccount", "User"),
}
_NAMESPACE_INTRO = "each member of this list must be '*' or a DNS-1123 label; "


def validate_rule(rule: Json, path: Path) -> Errors:
    for position, subject in enumerate(items(rule, "subjects")):
        yield from _validate_subject(subject, path.child("subjects").index(position))
    if not items(rule, "subjects"):
        yield required(path.child("subjects"), "subjects must contain at least one value")
    if not items(rule, "resourceRules") and not items(rule, "nonResourceRules"):
        yield required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for position, each in enumerate(items(rule, "resourceRules")):
        yield from _validate_resource_rule(each, path.child("resourceRules").index(position))
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


def _validate_resource_rule(rule: Json, path: Path) -> Errors:
    yield from _validate_verbs(items(rule, "verbs"), path.child("verbs"))
    for field, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values = items(rule, field)
        if not values:
            yield required(path.child(field), f"resource rules must supply at least one {one}")
        else:
            yield from _validate_wildcard(values, path.child(field), many)
    yield from _validate_namespaces(rule, path.child("namespaces"))


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
    """Return why a path, which may end with a wildcard, is invalid; empty when it is valid."""
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
