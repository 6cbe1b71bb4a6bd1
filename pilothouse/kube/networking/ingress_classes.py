"""IngressClasses."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import GenerationStrategy, KubeStrategy
from pilothouse.kube.validation.domains import domain_prefixed_path
from pilothouse.kube.validation.fields import dns_label, dns_subdomain, follow
from pilothouse.machinery.field import (
    Errors,
    ErrorType,
    Path,
    declared,
    forbidden,
    not_supported,
    required,
    root,
    too_long,
)
from pilothouse.machinery.objects import Json, annotations_of, name_of
from pilothouse.machinery.validation.immutable import validate_immutable_field
from pilothouse.machinery.validation.names import is_valid_path_segment_name

DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
MAX_CONTROLLER_LENGTH = 250


class IngressClassStrategy(GenerationStrategy, KubeStrategy):
    namespaced = False

    def default(self, obj: Json) -> None:
        parameters = obj["spec"].get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        spec, path = obj["spec"], root("spec")
        controller = spec.get("controller") or ""
        if len(controller.encode()) > MAX_CONTROLLER_LENGTH:
            yield too_long(path.child("controller"), MAX_CONTROLLER_LENGTH)
        yield from domain_prefixed_path(controller, path.child("controller"))
        if spec.get("parameters") is not None:
            yield from _validate_parameters(spec["parameters"], path.child("parameters"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        new, before = obj["spec"].get("controller") or "", old["spec"].get("controller") or ""
        yield from validate_immutable_field(new, before, root("spec", "controller"))
        yield from self.validate(obj)


def validate_reference(reference: Json, path: Path) -> Errors:
    """Validate group, kind and name of a referenced object."""
    if reference.get("apiGroup") is not None:
        yield from dns_subdomain(reference["apiGroup"], path.child("apiGroup"))
    for field in ("kind", "name"):
        if not reference.get(field):
            yield required(path.child(field))
        else:
            yield from follow(is_valid_path_segment_name, reference[field], path.child(field))


def _validate_parameters(parameters: Json, path: Path) -> Errors:
    for error in validate_reference(parameters, path):
        yield declared(error) if error.type is ErrorType.REQUIRED else error
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        yield required(path.child("scope"))
    elif scope not in ("Cluster", "Namespace"):
        yield not_supported(path.child("scope"), scope, ("Cluster", "Namespace"), plain=True)
    elif scope == "Cluster":
        if namespace is not None:
            yield forbidden(path.child("namespace"), "`parameters.scope` is set to 'Cluster'")
    elif namespace is None:
        yield required(path.child("namespace"), "`parameters.scope` is set to 'Namespace'")
    else:
        yield from dns_label(namespace, path.child("namespace"))


def _name(obj: Json) -> str:
    default = annotations_of(obj).get(DEFAULT_CLASS) == "true"
    return f"{name_of(obj)} (default)" if default else name_of(obj)


def _parameters(obj: Json) -> str:
    parameters = obj["spec"].get("parameters")
    if parameters is None:
        return "<none>"
    group = parameters.get("apiGroup")
    kind = parameters.get("kind") or ""
    return f"{kind if group is None else f'{kind}.{group}'}/{parameters.get('name') or ''}"


INGRESS_CLASSES = Resource(
    names=Names("ingressclasses", kind="IngressClass"),
    strategy=IngressClassStrategy(),
    group="networking.k8s.io",
    columns=[
        Column(NAME.name, _name, format=NAME.format, documented=NAME.documented),
        Column(
            "Controller",
            lambda obj: obj["spec"].get("controller") or "",
            description="Controller that is responsible for handling this class",
        ),
        Column("Parameters", _parameters, description="A reference to a resource with additional parameters"),
        AGE,
    ],
)
