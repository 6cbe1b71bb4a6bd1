"""FlowSchemas: which requests go to which priority level."""

from __future__ import annotations

from pilothouse.apiserver.flowcontrol.mandatory import EXEMPT, MANDATORY_SCHEMAS
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.flowcontrol.rules import validate_rule
from pilothouse.kube.flowcontrol.status import GROUP, FlowControlStatus, validate_status
from pilothouse.kube.strategy import SpecAndStatusStrategy
from pilothouse.kube.validation.fields import follow
from pilothouse.kube.validation.internal_structs import ANY, FLAG, NUMBER, TEXT, pointer, slice_of, struct
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, items, name_of, number, part, text
from pilothouse.machinery.validation.immutable import semantically_equal
from pilothouse.machinery.validation.object_names import name_is_dns_subdomain

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


class FlowSchemaStrategy(SpecAndStatusStrategy):
    kind = GroupVersionKind(GROUP, "v1", "FlowSchema")
    namespaced = False

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or _DEFAULT_PRECEDENCE

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        name, spec = name_of(obj), part(obj, "spec")
        yield from _validate_spec(spec, name, root("spec"))
        fixed = MANDATORY_SCHEMAS.get(name)
        if fixed is not None and not semantically_equal(spec, fixed):
            yield invalid(root("spec"), _shown_spec(spec), f"spec of '{name}' must equal the fixed value")
        yield from validate_status(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self.validate(obj)


class FlowSchemaStatusStrategy(FlowControlStatus, FlowSchemaStrategy):
    pass


def _validate_spec(spec: Json, name: str, path: Path) -> Errors:
    yield from _validate_precedence(number(spec, "matchingPrecedence"), name, path.child("matchingPrecedence"))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _DISTINGUISHERS:
        yield not_supported(path.child("distinguisherMethod", "type"), _method(method), _DISTINGUISHERS)
    level, where = text(spec, "priorityLevelConfiguration", "name"), path.child("priorityLevelConfiguration", "name")
    if level:
        yield from follow(name_is_dns_subdomain, level, where)
    else:
        yield required(where, "must reference a priority level")
    for position, rule in enumerate(items(spec, "rules")):
        yield from validate_rule(rule, path.child("rules").index(position))


def _validate_precedence(precedence: int, name: str, path: Path) -> Errors:
    if precedence <= 0:
        yield invalid(path, precedence, "must be a positive value")
    if precedence > _MAX_PRECEDENCE:
        yield invalid(path, precedence, f"must not be greater than {_MAX_PRECEDENCE}")
    if precedence == 1 and name != EXEMPT:
        yield invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")


def _is_dangling(obj: Json) -> str:
    conditions = items(obj, "status", "conditions")
    return next((text(each, "status") for each in conditions if each.get("type") == "Dangling"), "?")


def _distinguisher(obj: Json) -> str:
    method = part(obj, "spec").get("distinguisherMethod")
    return "<none>" if method is None else text(method, "type")


_TYPES = "io.k8s.api.flowcontrol.v1."

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
