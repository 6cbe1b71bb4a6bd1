"""Kinds of an operator: `@kind` makes a class the spec of a custom resource, with typed objects and a definition.

The class is a plain class with annotations, a dataclass, a msgspec.Struct or a pydantic model; markers of
`pilothouse.builder` add constraints. An object wraps its JSON: the annotated fields are the spec, `metadata` and
`status` are attributes. Fields without a declaration survive: only changed fields are written.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast, dataclass_transform

import orjson

from pilothouse.builder.resource import Column, ObjectMeta, Scale, plural_of
from pilothouse.builder.types.fields import is_struct
from pilothouse.builder.types.markers import Rule
from pilothouse.builder.types.pydantic_models import is_model
from pilothouse.builder.types.wire import apply_changes, form_of, schema_of, to_wire
from pilothouse.extensions.schema.structural import PRESERVE, VALIDATIONS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json, uid_of
from pilothouse.operator.conditions import Conditions, Status
from pilothouse.operator.types import BuiltinKind

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    S = TypeVarWithDefault("S", bound=Any, default=Status)
else:
    S = TypeVar("S")

T = TypeVar("T")

Scope: TypeAlias = Literal["Namespaced", "Cluster"]
AnyKind: TypeAlias = "str | GroupVersionKind | type[Any]"
"""A kind: "apps/v1 Deployment", a GroupVersionKind, or a class with `@kind` or of `pilothouse.operator.types`."""

_STRUCTURE: Json = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}


class Object(Generic[S]):
    """Base class of kinds for type checkers: declares `metadata` and `status`. At run time, `@kind` adds the base.

    >>> from pilothouse.operator import Object, Status, kind, to_json
    >>> class BoatStatus(Status):
    ...     port: str = ""
    >>> @kind(group="demo.example.com", version="v1", status=BoatStatus)
    ... class Boat(Object[BoatStatus]):
    ...     length: int
    >>> boat = Boat(length=7)
    >>> boat.metadata.name, boat.status.port = "ann", "Cork"
    >>> to_json(boat)["spec"], to_json(boat)["status"]
    ({'length': 7}, {'port': 'Cork'})
    """

    __slots__ = ()

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata. Changed fields are written by `update`."""
        return _state(self).metadata

    @metadata.setter
    def metadata(self, metadata: ObjectMeta) -> None:
        _state(self).metadata = metadata

    @property
    def status(self) -> S:
        """The status. A reconciler writes a changed status after `reconcile`."""
        return cast("S", _state(self).status)

    @status.setter
    def status(self, status: S) -> None:
        _state(self).status = status


class _State:
    """JSON of one object, with the typed parts that were read from it."""

    def __init__(self, kind: Kind, json: Json, spec: Json) -> None:
        self.kind, self.json = kind, json
        self.spec_before = spec

    @cached_property
    def metadata(self) -> ObjectMeta:
        return cast("ObjectMeta", form_of(ObjectMeta).read(self.json.get("metadata") or {}))

    @cached_property
    def status(self) -> Any:
        if self.kind.status is None:
            raise AttributeError(f"{self.kind.gvk.kind} has no status: declare @kind(…, status=True)")
        status = self.kind.read_status(self.json)
        self.status_before = write_status(status)
        return status

    @cached_property
    def status_before(self) -> Json:
        """The typed status as it was read; read again if the author assigned a status before reading it."""
        return write_status(self.kind.read_status(self.json))


def _state(obj: Any) -> _State:
    """Return the state of an instance; an instance made by its constructor gets a new, nameless object."""
    state: _State | None = obj.__dict__.get("_object")
    if state is None:
        kind = kind_of(type(obj))
        state = obj.__dict__["_object"] = _State(kind, kind.new_json(), {})
    return state


def to_json(obj: Any) -> Json:
    """Return an object as JSON. A dict is returned unchanged; a typed object as a copy with all changes.

    >>> from pilothouse.operator import kind, to_json
    >>> @kind(group="demo.example.com", version="v1")
    ... class Boat:
    ...     length: int = 3
    >>> to_json(Boat(metadata={"name": "ann"}))["metadata"]
    {'name': 'ann'}
    """
    if isinstance(obj, dict):
        return obj
    return cast("Json", type(obj).__kind__.write(obj))


def status_of(obj: Any) -> Json:
    """Return the status as JSON, with all changes of a typed object; empty without a status."""
    if isinstance(obj, dict):
        return obj.get("status") or {}
    state = _state(obj)
    if "status" not in vars(state):
        return state.json.get("status") or {}
    result = {"status": copy_json(state.json.get("status") or {})}
    changed(result, "status", state.status_before, write_status(state.status))
    return result["status"]


def stored_json(obj: Any) -> Json:
    """Return an object as the server stored it, for its names and uid; as `to_json` if it was never stored.

    The JSON is shared: do not modify it.
    """
    stored: Json = obj if isinstance(obj, dict) else _state(obj).json
    return stored if uid_of(stored) else to_json(obj)


@dataclass(frozen=True)
class Kind:
    """A declared kind: names, definition and conversion between JSON and instances of `cls`."""

    cls: type
    gvk: GroupVersionKind
    plural: str
    namespaced: bool = True
    status: type | None = None
    singular: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    columns: Sequence[Column] = ()
    selectable_fields: Sequence[str] = ()
    rules: Sequence[Rule] = ()
    scale: Scale | None = None
    served: bool = True
    storage: bool = True
    deprecated: str | None = None
    names: Mapping[str, Any] | None = None
    """Local names at the declaration, for annotations."""

    @property
    def resource(self) -> GroupVersionResource:
        return self.gvk.group_version.resource(self.plural)

    def new_json(self) -> Json:
        return {"apiVersion": self.gvk.api_version, "kind": self.gvk.kind, "metadata": {}}

    def read(self, obj: Json) -> Any:
        """Return a typed object. The JSON must not be shared: the object keeps it."""
        typed = form_of(self.cls, self.names).read(obj.get("spec") or {})
        typed.__dict__["_object"] = _State(self, obj, to_wire(typed))
        return typed

    def read_status(self, obj: Json) -> Any:
        json = obj.get("status") or {}
        typed = form_of(self.status, self.names).read(json)
        conditions = getattr(typed, "conditions", None)
        if isinstance(conditions, Conditions):
            conditions.generation = (obj.get("metadata") or {}).get("generation")
        if self.status is Status:
            typed.undeclared.update({name: value for name, value in json.items() if name != "conditions"})
        return typed

    def write(self, typed: Any) -> Json:
        """Return the JSON with the changes of the typed object. Nothing is shared with the object."""
        state = _state(typed)
        obj = copy_json(state.json)
        changed(obj, "spec", state.spec_before, to_wire(typed))
        if "metadata" in vars(state):
            changed(obj, "metadata", to_wire(form_of(ObjectMeta).read(obj["metadata"])), to_wire(state.metadata))
        if "status" in vars(state):
            changed(obj, "status", state.status_before, write_status(state.status))
        return obj

    def definition_version(self) -> Json:
        """Return the version's entry in the CustomResourceDefinition. Raises TypeError for an unreadable annotation."""
        schema = self.schema()
        subresources = {
            **({"status": {}} if self.status else {}),
            **({"scale": self.scale.declared()} if self.scale else {}),
        }
        version: Json = {
            "name": self.gvk.version,
            "served": self.served,
            "storage": self.storage,
            "schema": {"openAPIV3Schema": schema},
            "subresources": subresources,
            "additionalPrinterColumns": [column.declared(schema) for column in self.columns],
            "selectableFields": [{"jsonPath": path} for path in self.selectable_fields],
        }
        if self.deprecated is not None:
            version |= {"deprecated": True, **({"deprecationWarning": self.deprecated} if self.deprecated else {})}
        return {name: value for name, value in version.items() if value not in ([], {})}

    def schema(self) -> Json:
        """Return the structural schema of whole objects."""
        spec = schema_of(self.cls, names=self.names)
        description = spec.pop("description", "")
        # Defaults inside of an absent spec need a spec.
        spec = spec if spec.get("required") else {"default": {}, **spec}
        properties = {**_STRUCTURE, "spec": spec}
        if self.status is not None:
            status = schema_of(self.status, names=self.names)
            status.pop("description", "")
            properties["status"] = {**status, PRESERVE: True} if self.status is Status else status
        schema: Json = {"type": "object", "properties": properties}
        if description:
            schema["description"] = description
        if spec.get("required"):
            schema["required"] = ["spec"]
        if self.rules:
            schema[VALIDATIONS] = [entry for rule in self.rules for entry in rule.keywords("object")[VALIDATIONS]]
        return schema


def changed(obj: Json, part: str, before: Json, after: Json) -> None:
    """Apply the difference between two states of a part of the object."""
    if before != after:
        apply_changes(obj.setdefault(part, {}), before, after)


def write_status(status: Any) -> Json:
    json = cast("Json", to_wire(status))
    return {**status.undeclared, **json} if isinstance(status, Status) else json


@dataclass_transform(kw_only_default=True, field_specifiers=(dataclasses.field,))
def kind(
    *,
    group: str,
    version: str,
    kind: str = "",
    plural: str = "",
    singular: str = "",
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    scope: Scope = "Namespaced",
    status: bool | type = False,
    columns: Sequence[Column] = (),
    selectable_fields: Sequence[str] = (),
    rules: Sequence[Rule | str] = (),
    scale: Scale | None = None,
    storage: bool = True,
    served: bool = True,
    deprecated: str | None = None,
) -> Callable[[type[T]], type[T]]:
    """Declare a custom resource: the annotated fields of the class are the spec of its objects.

    `status` is a class, or True for a status of conditions and undeclared fields. `rules` are CEL rules of whole
    objects; rules of the spec are a class attribute `rules`. `storage` and `served` matter for kinds with several
    versions: one class each. Raises TypeError for a class that cannot be a spec.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Minimum
    >>> from pilothouse.operator import definitions, kind
    >>> @kind(group="demo.example.com", version="v1", short_names=["bk"])
    ... class Backup:
    ...     keep: Annotated[int, Minimum(1)] = 7
    >>> definitions(Backup)[0]["metadata"]["name"], Backup(metadata={"name": "nightly"}).keep
    ('backups.demo.example.com', 7)
    """
    caller = sys._getframe(1)
    names = caller.f_globals if caller.f_locals is caller.f_globals else dict(caller.f_locals)

    def declare(cls: type[T]) -> type[T]:
        name = kind or cls.__name__
        typed = _object_class(cls)
        typed.__kind__ = Kind(  # type: ignore[attr-defined]
            typed,
            GroupVersionKind(group, version, name),
            plural or plural_of(name),
            namespaced=scope == "Namespaced",
            status=Status if status is True else status or None,
            singular=singular or name.lower(),
            short_names=short_names,
            categories=categories,
            columns=columns,
            selectable_fields=selectable_fields,
            rules=[Rule(rule) if isinstance(rule, str) else rule for rule in rules],
            scale=scale,
            served=served,
            storage=storage,
            deprecated=deprecated,
            names=names,
        )
        return typed

    return declare


def _object_class(cls: type[T]) -> type[T]:
    """Return the class with `Object` as a base and a place for the object's state."""
    namespace = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    metaclass: Any = type(cls)
    if is_struct(cls):
        return cast("type[T]", metaclass(cls.__name__, _bases(cls), namespace, dict=True))
    if is_model(cls):
        return cast("type[T]", metaclass(cls.__name__, _bases(cls), namespace))
    if "__dataclass_fields__" not in vars(cls):
        cls = dataclass(kw_only=True)(cls)
    typed: Any = metaclass(cls.__name__, _bases(cls), namespace)
    create = typed.__init__

    def __init__(self: Any, *args: Any, metadata: ObjectMeta | Json | None = None, **fields: Any) -> None:
        create(self, *args, **fields)
        if metadata is not None:
            is_json = isinstance(metadata, dict)
            _state(self).metadata = form_of(ObjectMeta).read(metadata) if is_json else cast("ObjectMeta", metadata)

    typed.__init__ = __init__
    return cast("type[T]", typed)


def _bases(cls: type) -> tuple[type, ...]:
    return (cls,) if issubclass(cls, Object) else (cls, Object)


def kind_of(cls: type[Any]) -> Kind:
    """Return the declaration of a class with `@kind`. Raises TypeError for other classes."""
    declared: Kind | None = getattr(cls, "__kind__", None)
    if declared is None:
        raise TypeError(f"{cls.__qualname__} is not a kind: declare it with @kind(group=…, version=…)")
    return declared


def gvk_of(kind: AnyKind) -> GroupVersionKind:
    """Return group, version and kind. Raises ValueError for a text in another form, TypeError for another class."""
    if isinstance(kind, GroupVersionKind):
        return kind
    if isinstance(kind, str):
        api_version, _, name = kind.strip().rpartition(" ")
        if not api_version or not name:
            raise ValueError(f'{kind!r} is not a kind: write "v1 ConfigMap" or "apps/v1 Deployment"')
        return GroupVersion.parse(api_version.strip()).kind(name)
    if issubclass(kind, BuiltinKind):
        return GroupVersion.parse(kind.API_VERSION).kind(kind.KIND)
    return kind_of(kind).gvk


def definitions(*classes: type[Any]) -> list[Json]:
    """Return the CustomResourceDefinitions of the classes; classes of one kind are its versions.

    Raises ValueError unless exactly one version of a kind has `storage`.

    >>> from pilothouse.operator import definitions, kind
    >>> @kind(group="demo.example.com", version="v1", scope="Cluster")
    ... class Harbour:
    ...     berths: int
    >>> definitions(Harbour)[0]["spec"]["scope"]
    'Cluster'
    """
    by_kind: dict[str, list[Kind]] = {}
    for cls in classes:
        declared = kind_of(cls)
        by_kind.setdefault(f"{declared.plural}.{declared.gvk.group}", []).append(declared)
    return [_definition(name, versions) for name, versions in by_kind.items()]


def _definition(name: str, versions: list[Kind]) -> Json:
    stored = [version for version in versions if version.storage]
    if len(stored) != 1:
        raise ValueError(f"exactly one version of {name} must have storage=True, not {len(stored)}")
    main = stored[0]
    names: Json = {
        "kind": main.gvk.kind,
        "listKind": f"{main.gvk.kind}List",
        "plural": main.plural,
        "singular": main.singular,
        "shortNames": list(main.short_names),
        "categories": list(main.categories),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": main.gvk.group,
            "scope": "Namespaced" if main.namespaced else "Cluster",
            "names": {key: value for key, value in names.items() if value},
            "versions": [version.definition_version() for version in versions],
        },
    }


def reader_of(kind: AnyKind) -> Callable[[Json], Any]:
    """Return the function that makes objects of the kind from JSON: typed for classes, else the JSON itself."""
    return kind_of(kind).read if isinstance(kind, type) and not issubclass(kind, dict) else _untyped


def _untyped(obj: Json) -> Any:
    return obj


def copy_json(obj: Json) -> Json:
    """Return a copy that shares nothing with the object."""
    return cast("Json", orjson.loads(orjson.dumps(obj)))


def classes_of(kinds: Iterable[AnyKind]) -> list[type[Any]]:
    """Return the distinct classes with `@kind` among the kinds."""
    return [*dict.fromkeys(kind for kind in kinds if isinstance(kind, type) and hasattr(kind, "__kind__"))]
