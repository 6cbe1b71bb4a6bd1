"""The base class of resources: a kind as a Python class, with methods for its rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

from pilothouse.builder.types.markers import Rule
from pilothouse.builder.types.wire import from_wire, to_wire
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.builder.subresources import Subresource, Verb


R = TypeVar("R", bound="Resource")
F = TypeVar("F", bound="Callable[..., Any]")
_PARTS = {"Spec": "spec", "Status": "status"}


@dataclass
class ObjectMeta:
    """The metadata of an object.

    >>> from pilothouse.builder import ObjectMeta
    >>> ObjectMeta(name="a", labels={"app": "web"}).labels["app"]
    'web'
    """

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: list[str] = field(default_factory=list)
    owner_references: list[dict[str, Any]] = field(default_factory=list)
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
@dataclass(kw_only=True)
class Resource:
    """A kind. Subclasses declare the fields of its objects, and override methods to add rules.

    `Spec` and `Status` inside the class are dataclasses, pydantic models, or structural schemas as dicts. Other fields
    are annotated in the class itself. A kind with `Status` has the status subresource.

    >>> from dataclasses import dataclass
    >>> from pilothouse.builder import Resource
    >>> class Flunder(Resource):
    ...     @dataclass
    ...     class Spec:
    ...         reference: str = ""
    >>> Flunder(spec=Flunder.Spec(reference="other")).to_json()["spec"]
    {'reference': 'other'}
    """

    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    columns: ClassVar[Iterable[Column]] = ()
    """Columns of `kubectl get` in addition to the name; default: the age."""
    selectable_fields: ClassVar[Iterable[str]] = ()
    """JSON paths for field selectors, such as ".spec.color"."""
    rules: ClassVar[Iterable[Rule | str]] = ()
    """CEL rules for the whole object."""
    scale: ClassVar[Scale | None] = None
    """Paths of the replica counts; enables the scale subresource."""

    api_version: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    subresources: ClassVar[dict[str, Subresource]] = {}

    if TYPE_CHECKING:
        # Instances of the author's Spec and Status.
        spec: Any = None
        status: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = inspect.get_annotations(cls)
        for part, name in _PARTS.items():
            if part in cls.__dict__:
                own.setdefault(name, vars(cls)[part])
                empty = _empty(vars(cls)[part])
                # A spec without an empty value is required. A new object never has a status.
                if name == "status" or empty() is not None:
                    setattr(cls, name, field(default_factory=empty))
        cls.__annotations__ = own
        cls.rules = [Rule(rule) if isinstance(rule, str) else rule for rule in cls.rules]
        cls.subresources = {}
        dataclass(kw_only=True)(cls)

    def default(self) -> None:
        """Set defaults. Called on every decoded object, in its own version."""

    def validate(self, old: Any) -> Errors:
        """Yield the validation errors. `old` is the replaced object; None on create."""
        yield from ()

    def prepare_for_create(self) -> None:
        """Reset fields that clients may not set on create. Called on the storage version."""

    def prepare_for_update(self, old: Any) -> None:
        """Copy fields that clients may not change from `old`. Called on the storage version."""

    def warnings(self, old: Any) -> Iterable[str]:
        """Return warnings for a valid object."""
        return ()

    def convert_to(self, stored: type[Any]) -> Any:
        """Convert the object to the storage version. Other versions override this method."""
        raise NotImplementedError(f"{type(self).__name__} has no convert_to")

    @classmethod
    def convert_from(cls: type[R], stored: Any) -> R:
        """Convert an object of the storage version to this version. Other versions override this method."""
        raise NotImplementedError(f"{cls.__name__} has no convert_from")

    @classmethod
    def generate_name(cls, prefix: str) -> str:
        """Return a name for an object that has only a generateName."""
        from pilothouse.machinery.names_generator import generate_name

        return generate_name(prefix)

    @classmethod
    def from_json(cls: type[R], obj: Mapping[str, Any]) -> R:
        """Return the object as an instance of this class. Undeclared fields are dropped."""
        typed: R = from_wire(cls, obj)
        return typed

    def to_json(self) -> Json:
        """Return the object as JSON."""
        wire: Json = to_wire(self)
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {}, **wire}

    @classmethod
    def subresource(cls, name: str, *, verb: Verb = "create", methods: Iterable[str] = ("GET",)) -> Callable[[F], F]:
        """Serve a function as a subresource; see `pilothouse.builder.subresources`. `methods` are the HTTP methods of
        a connect.
        """

        def decorate(function: F) -> F:
            from pilothouse.builder.subresources import Subresource

            cls.subresources[name] = Subresource(name, verb, function, frozenset(methods))
            return function

        return decorate

    @property
    def name(self) -> str:
        """The name in the metadata."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace in the metadata; empty for a cluster-scoped object."""
        return self.metadata.namespace


def _empty(part: Any) -> Any:
    """Return a factory for the part of a new object: an empty instance, or None if it has required fields."""

    def make() -> Any:
        if isinstance(part, dict):
            return {}
        try:
            return part()
        except (TypeError, ValueError):
            return None

    return make


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. The type defaults to the field's type. A priority above 0 shows the column in `-o
    wide` only.

    >>> from pilothouse.builder import Column
    >>> Column("Reference", ".spec.reference", priority=1).title
    'Reference'
    """

    title: str
    path: str
    type: str = ""
    format: str = ""
    description: str = ""
    priority: int = 0

    def declared(self, schema: Json) -> Json:
        """Return the column as an additionalPrinterColumn of a kind with this schema."""
        field_schema = _at(schema, self.path)
        column = {"name": self.title, "jsonPath": self.path, "type": self.type or _column_type(field_schema)}
        extra = {"format": self.format, "description": self.description, "priority": self.priority}
        return column | {key: value for key, value in extra.items() if value}


AGE = Column("Age", ".metadata.creationTimestamp", type="date")
"""Age of the object."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Paths of the replica counts. `selector` is the path of a label selector string.

    >>> from pilothouse.builder import Scale
    >>> Scale(selector=".status.selector").status
    '.status.replicas'
    """

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str = ""

    def declared(self) -> Json:
        """Return the scale subresource of a CustomResourceDefinition."""
        paths = {"specReplicasPath": self.spec, "statusReplicasPath": self.status}
        return paths | ({"labelSelectorPath": self.selector} if self.selector else {})


def _at(schema: Any, path: str) -> Json:
    """Return the schema of the field; empty if the path does not exist."""
    for name in path.strip(".").split("."):
        schema = (schema.get("properties") or {}).get(name, {})
    return dict(schema)


def _column_type(schema: Json) -> str:
    if schema.get("format") == "date-time":
        return "date"
    return str(schema["type"]) if schema.get("type") in ("integer", "number", "boolean") else "string"


def plural_of(kind: str) -> str:
    """Return the regular English plural, as kubectl guesses it."""
    singular = kind.lower()
    if singular.endswith(("s", "x", "z", "ch", "sh")):
        return f"{singular}es"
    if singular.endswith("y") and singular[-2:-1] not in "aeiou":
        return f"{singular[:-1]}ies"
    return f"{singular}s"
