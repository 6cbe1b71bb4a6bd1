"""Conversion of a review to authorizer attributes.

An unparsable selector is dropped: the review covers more, and its status reports the error.
"""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Attributes
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.selectors import fields, labels
from pilothouse.machinery.selectors.requirement import InvalidSelector, Operator, new_requirement

_LABEL_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}
_FIELD_SIGNS = {"In": "=", "NotIn": "!="}


@dataclass(frozen=True, slots=True)
class Question:
    attributes: Attributes
    error: str = ""
    """Error about dropped selectors, or an empty string."""


@dataclass(frozen=True, slots=True)
class _Selector:
    text: str = ""
    broken: bool = False


def question_of(spec: Json, user: User) -> Question:
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = part(spec, "nonResourceAttributes")
        return Question(Attributes(user, verb=text(path, "verb"), path=text(path, "path")))
    field = _read(resource.get("fieldSelector"), lambda raw: str(fields.parse(raw)), _field_requirement)
    label = _read(resource.get("labelSelector"), lambda raw: str(labels.parse(raw)), _label_requirement)
    attributes = Attributes(
        user,
        verb=text(resource, "verb"),
        is_resource=True,
        group=text(resource, "group"),
        version=text(resource, "version") or "*",
        resource=text(resource, "resource"),
        subresource=text(resource, "subresource"),
        namespace=text(resource, "namespace"),
        name=text(resource, "name"),
        field_selector=field.text,
        label_selector=label.text,
    )
    selectors = {"fieldSelector": field, "labelSelector": label}
    return Question(
        attributes,
        "; ".join(
            f"spec.resourceAttributes.{name} {'partially ' if selector.text else ''}ignored due to parse error"
            for name, selector in selectors.items()
            if selector.broken
        ),
    )


def subject_of(spec: Json) -> User:
    extra = {key: tuple(values or ()) for key, values in part(spec, "extra").items()}
    return User(text(spec, "user"), text(spec, "uid"), tuple(items(spec, "groups")), extra)


def _read(selector: Json | None, parse: Callable[[str], str], one: Callable[[Json], str | None]) -> _Selector:
    if selector is None:
        return _Selector()
    if items(selector, "requirements"):
        requirements = map(one, items(selector, "requirements"))
        result = list(requirements)
        return _Selector(",".join(item for item in result if item is not None), broken=None in result)
    try:
        return _Selector(parse(text(selector, "rawSelector")))
    except InvalidSelector:
        return _Selector(broken=True)


def _field_requirement(requirement: Json) -> str | None:
    """Return a field selector requirement, or None for an unsupported operator."""
    values, sign = items(requirement, "values"), _FIELD_SIGNS.get(text(requirement, "operator"))
    if sign is None or len(values) != 1:
        return None
    return f"{text(requirement, 'key')}{sign}{fields.escape_value(values[0])}"


def _label_requirement(requirement: Json) -> str | None:
    operator = _LABEL_OPERATORS.get(text(requirement, "operator"))
    if operator is None:
        return None
    try:
        return str(new_requirement(text(requirement, "key"), operator, items(requirement, "values")))
    except InvalidSelector:
        return None
