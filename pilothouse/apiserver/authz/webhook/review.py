"""Conversion of request attributes to a SubjectAccessReview."""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import Attributes
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors import fields, labels
from pilothouse.machinery.selectors.requirement import InvalidSelector, Operator

_OPERATORS = {
    Operator.EQUALS: "In",
    Operator.DOUBLE_EQUALS: "In",
    Operator.IN: "In",
    Operator.NOT_EQUALS: "NotIn",
    Operator.NOT_IN: "NotIn",
    Operator.EXISTS: "Exists",
    Operator.DOES_NOT_EXIST: "DoesNotExist",
}


def review_spec(asked: Attributes) -> Json:
    """Return the spec of a SubjectAccessReview without empty fields."""
    spec: Json = {}
    if asked.is_resource:
        spec["resourceAttributes"] = _resource(asked)
    else:
        spec["nonResourceAttributes"] = _present({"path": asked.path, "verb": asked.verb})
    user = asked.user
    extra = {key: list(values) for key, values in user.extra.items()}
    return spec | _present({"user": user.name, "groups": list(user.groups), "extra": extra, "uid": user.uid})


def _resource(asked: Attributes) -> Json:
    return _present({
        "namespace": asked.namespace,
        "verb": asked.verb,
        "group": asked.group,
        "version": asked.version,
        "resource": asked.resource,
        "subresource": asked.subresource,
        "name": asked.name,
        "fieldSelector": _selector(_field_requirements(asked.field_selector)),
        "labelSelector": _selector(_label_requirements(asked.label_selector)),
    })  # fmt: skip


def _present(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value}


def _selector(requirements: list[Json]) -> Json:
    return {"requirements": requirements} if requirements else {}


def _field_requirements(selector: str) -> list[Json]:
    try:
        found = fields.parse(selector).requirements if selector else ()
    except InvalidSelector:
        return []
    return [{"key": each.field, "operator": "In" if each.equal else "NotIn", "values": [each.value]} for each in found]


def _label_requirements(selector: str) -> list[Json]:
    try:
        found = labels.parse(selector).requirements if selector else ()
    except InvalidSelector:
        return []
    return [
        _present({"key": each.key, "operator": _OPERATORS[each.operator], "values": list(each.values)})
        for each in found
        if each.operator in _OPERATORS
    ]
