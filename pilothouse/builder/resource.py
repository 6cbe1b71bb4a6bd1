"""The base class of an author's resources: a kind as a Python class, and the rules that its methods add."""

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
    from pilothouse.builder.columns import Column, Scale
    from pilothouse.builder.subresources import Subresource, Verb

R = TypeVar("R", bound="Resource")
F = TypeVar("F", bound="Callable[..., Any]")
_PARTS = {"Spec": "spec", "Status": "status"}


@dataclass
class ObjectMeta:
    """The metadata that every object has.

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
    """A kind. Subclasses say what its objects look like, and override the rules that they want to add to.

    `Spec` and `Status` inside the class are dataclasses, pydantic models, or structural schemas as dicts; other fields
    of the object are annotated in the class itself. A kind with `Status` has the status subresource.

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
    """What `kubectl get` shows besides the name; the age, if nothing is said."""
    selectable_fields: ClassVar[Iterable[str]] = ()
    """JSON paths that field selectors may name, such as ".spec.color"."""
    rules: ClassVar[Iterable[Rule | str]] = ()
    """CEL rules over the whole object."""
    scale: ClassVar[Scale | None] = None
    """Where the object keeps its replicas; gives it the scale subresource."""

    api_version: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    subresources: ClassVar[dict[str, Subresource]] = {}

    if TYPE_CHECKING:
        # Whatever the author's classes of these names are.
        spec: Any = None
        status: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = inspect.get_annotations(cls)
        for part, name in _PARTS.items():
            if part in cls.__dict__:
                own.setdefault(name, vars(cls)[part])
                empty = _empty(vars(cls)[part])
                # A spec that cannot be empty must be there. A status cannot be, when an object is created.
                if name == "status" or empty() is not None:
                    setattr(cls, name, field(default_factory=empty))
        cls.__annotations__ = own
        cls.rules = [Rule(rule) if isinstance(rule, str) else rule for rule in cls.rules]
        cls.subresources = {}
        dataclass(kw_only=True)(cls)

    def default(self) -> None:
        """Fill in what the author of an object left out. Called on every object that is read, in its own version."""

    def validate(self, old: Any) -> Errors:
        """Yield what is wrong with the object. `old` is what it takes the place of; None when it is created."""
        yield from ()

    def prepare_for_create(self) -> None:
        """Change what a creator may not decide. Called on the version that is stored."""

    def prepare_for_update(self, old: Any) -> None:
        """Carry over from `old` what an updater may not change. Called on the version that is stored."""

    def warnings(self, old: Any) -> Iterable[str]:
        """Return what a writer is warned of, though the object is valid."""
        return ()

    def convert_to(self, stored: type[Any]) -> Any:
        """Return the same object in the version that is stored. Versions that are not stored override it."""
        raise NotImplementedError(f"{type(self).__name__} has no convert_to")

    @classmethod
    def convert_from(cls: type[R], stored: Any) -> R:
        """Return an object of the stored version in this one. Versions that are not stored override it."""
        raise NotImplementedError(f"{cls.__name__} has no convert_from")

    @classmethod
    def generate_name(cls, prefix: str) -> str:
        """Return a name for an object that was sent with only a generateName."""
        from pilothouse.machinery.names_generator import generate_name

        return generate_name(prefix)

    @classmethod
    def from_json(cls: type[R], obj: Mapping[str, Any]) -> R:
        """Return the object as an instance of this class; what is not in the types is left out."""
        made: R = from_wire(cls, obj)
        return made

    def to_json(self) -> Json:
        """Return the object as clients see it."""
        wire: Json = to_wire(self)
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {}, **wire}

    @classmethod
    def subresource(cls, name: str, *, verb: Verb = "create", methods: Iterable[str] = ("GET",)) -> Callable[[F], F]:
        """Serve a function as a subresource, as in `pilothouse.builder.subresources`. A connect has `methods`."""

        def decorate(function: F) -> F:
            from pilothouse.builder.subresources import Subresource

            cls.subresources[name] = Subresource(name, verb, function, frozenset(methods))
            return function

        return decorate

    @property
    def name(self) -> str:
        """Return the name in the metadata."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Empty for an object that is in none."""
        return self.metadata.namespace


def _empty(part: Any) -> Any:
    """Return what makes the part of a new object: an empty one where that can be, else None."""

    def make() -> Any:
        if isinstance(part, dict):
            return {}
        try:
            return part()
        except (TypeError, ValueError):
            return None

    return make
