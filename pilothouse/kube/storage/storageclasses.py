"""StorageClasses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.fields import one_of, qualified_name
from pilothouse.kube.validation.selectors import DEPRECATED_NODE_LABELS, shown_labels
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import (
    Errors,
    ErrorType,
    Path,
    declared,
    duplicate,
    forbidden,
    invalid,
    required,
    root,
    too_long,
)
from pilothouse.machinery.objects import Json, annotations_of, items, name_of, part, text
from pilothouse.machinery.validation.immutable import validate_declared_immutable
from pilothouse.machinery.validation.labels import validate_label_name

GROUP = "storage.k8s.io"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"

_IMMUTABLE = {"parameters": 2, "provisioner": 1, "reclaimPolicy": 3, "volumeBindingMode": 4}
"""Immutable fields, in upstream's order, with their place in declared validation."""

_MOST_DUPLICATES = 100
"""Maximum reported duplicates of a term. Upstream reports a quadratic number."""

_CLASS = "io.k8s.api.storage.v1.StorageClass"

_MAX_PARAMETERS = 512

_MAX_SIZE = 256 * 1024


class StorageClassStrategy(KubeStrategy):
    namespaced = False
    repeats_warnings_on_update = True

    def default(self, obj: Json) -> None:
        if obj.get("reclaimPolicy") is None:
            obj["reclaimPolicy"] = "Delete"
        if obj.get("volumeBindingMode") is None:
            obj["volumeBindingMode"] = "Immediate"

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        for error in validate_driver(text(obj, "provisioner"), root("provisioner")):
            yield declared(error) if error.type is ErrorType.REQUIRED else error
        yield from validate_parameters(part(obj, "parameters"), root("parameters"), may_be_empty=True)
        if obj.get("reclaimPolicy"):
            yield from one_of(obj["reclaimPolicy"], root("reclaimPolicy"), ("Delete", "Retain"))
        if obj.get("volumeBindingMode") is None:
            yield required(root("volumeBindingMode"))
        else:
            modes = ("Immediate", "WaitForFirstConsumer")
            yield from one_of(obj["volumeBindingMode"], root("volumeBindingMode"), modes)
        terms = items(obj, "allowedTopologies")
        path = root("allowedTopologies")
        # Upstream starts with as many empty terms as there are terms, so an empty term duplicates each.
        seen: Counter[frozenset[tuple[str, frozenset[str]]]] = Counter({frozenset(): len(terms)})
        for position, term in enumerate(terms):
            at = path.index(position).child("matchLabelExpressions")
            yield from _validate_expressions(items(term, "matchLabelExpressions"), at)
            expressions = items(term, "matchLabelExpressions")
            rendered = frozenset(
                {text(expression, "key"): frozenset(items(expression, "values")) for expression in expressions}.items()
            )
            for _ in range(min(seen[rendered], _MOST_DUPLICATES)):
                yield duplicate(at, "")
            seen[rendered] += 1

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_again(obj, old)
        parameters = shown_labels(obj.get("parameters"))
        for field, place in _IMMUTABLE.items():
            new = parameters if field == "parameters" else obj.get(field)
            errors = validate_declared_immutable(new, old.get(field), root(field), place=place)
            if field == "volumeBindingMode" or version_rules.holds("AlignedMessages"):
                yield from errors
            else:
                yield from (forbidden(root(field), f"updates to {field} are forbidden.") for _ in errors)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        for position, term in enumerate(items(obj, "allowedTopologies")):
            path = root("allowedTopologies").index(position).child("matchLabelExpressions")
            for number, expression in enumerate(items(term, "matchLabelExpressions")):
                if message := DEPRECATED_NODE_LABELS.get(expression.get("key") or ""):
                    yield f"{path.index(number).child('key')}: {message}"


def _validate_expressions(expressions: Sequence[Json], path: Path) -> Errors:
    keys: set[str] = set()
    for position, expression in enumerate(expressions):
        at, key, values = path.index(position), text(expression, "key"), items(expression, "values")
        if not values:
            yield required(at.child("values"))
        earlier: set[str] = set()
        for number, value in enumerate(values):
            if value in earlier:
                yield duplicate(at.child("values").index(number), value)
            earlier.add(value)
        yield from validate_label_name(key, at.child("key"))
        if key in keys:
            yield duplicate(at.child("key"), key)
        keys.add(key)


def is_default_class(obj: Json) -> bool:
    return any(annotations_of(obj).get(name) == "true" for name in (DEFAULT_CLASS, BETA_DEFAULT_CLASS))


STORAGE_CLASSES = Resource(
    names=Names("storageclasses", kind="StorageClass", short=["sc"]),
    strategy=StorageClassStrategy(),
    group=GROUP,
    returns_deleted_object=True,
    columns=[
        Column(
            NAME.name,
            lambda obj: f"{name_of(obj)} (default)" if is_default_class(obj) else name_of(obj),
            format=NAME.format,
            documented=NAME.documented,
        ),
        Column("Provisioner", lambda obj: text(obj, "provisioner"), documented=(_CLASS, "provisioner")),
        Column("ReclaimPolicy", lambda obj: obj.get("reclaimPolicy") or "Delete", documented=(_CLASS, "reclaimPolicy")),
        Column(
            "VolumeBindingMode",
            lambda obj: obj.get("volumeBindingMode") or "Immediate",
            documented=(_CLASS, "volumeBindingMode"),
        ),
        Column(
            "AllowVolumeExpansion",
            lambda obj: bool(obj.get("allowVolumeExpansion")),
            documented=(_CLASS, "allowVolumeExpansion"),
        ),
        AGE,
    ],
)


def validate_driver(name: str, path: Path) -> Errors:
    if not name:
        yield required(path)
    else:
        yield from qualified_name(name.lower(), path)


def validate_parameters(parameters: dict[str, str], path: Path, *, may_be_empty: bool) -> Errors:
    if len(parameters) > _MAX_PARAMETERS:
        yield too_long(path, _MAX_PARAMETERS)
        return
    if "" in parameters:
        yield invalid(path, "", "field can not be empty.")
    if size_of(parameters) > _MAX_SIZE:
        yield too_long(path, _MAX_SIZE)
    if not parameters and not may_be_empty:
        yield required(path, "must contain at least one key/value pair")


def size_of(texts: dict[str, str]) -> int:
    return sum(len(name.encode()) + len(value.encode()) for name, value in texts.items())
