"""The query parameters of each verb: the fields of its options kind, and a few additional ones.

Nested objects, such as the preconditions of a delete, are not query parameters.
"""

from __future__ import annotations

from functools import cache

from pilothouse.apiserver.openapi.route import Parameter
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.schema import option_documentation
from pilothouse.machinery.wire_facts import facts_of, message_of

_META = GroupVersion("meta.k8s.io", "v1")
GET_OPTIONS = _META.kind("GetOptions")
LIST_OPTIONS = _META.kind("ListOptions")
CREATE_OPTIONS = _META.kind("CreateOptions")
UPDATE_OPTIONS = _META.kind("UpdateOptions")
PATCH_OPTIONS = _META.kind("PatchOptions")
DELETE_OPTIONS = _META.kind("DeleteOptions")

PRETTY = Parameter("pretty", "query", "string", option_documentation.of("pretty"))
NAMESPACE, PATH = (
    Parameter(name, "path", "string", option_documentation.of(name, option_documentation.IN_PATH))
    for name in ("namespace", "path")
)

_JSON_TYPES = {"string": "string", "bool": "boolean", "int32": "integer", "int64": "integer", "double": "number"}


def name_parameter(kind: str) -> Parameter:
    return Parameter("name", "path", "string", f"name of the {kind}")


@cache
def parameters_of(options: GroupVersionKind) -> tuple[Parameter, ...]:
    """Return the query parameters of an options kind; empty if the kind is not built in."""
    message = message_of(options)
    if message is None:
        return ()
    facts = facts_of(message.package, message.message).values()
    return tuple(
        Parameter(fact.name, "query", _JSON_TYPES[fact.type], option_documentation.of(fact.name, options.kind))
        for fact in facts
        if fact.type in _JSON_TYPES
    )


def without(parameters: tuple[Parameter, ...], *names: str) -> tuple[Parameter, ...]:
    return tuple(parameter for parameter in parameters if parameter.name not in names)
