"""CompiledSchema of one version: prunes, defaults and validates objects.

Checks run in upstream's order: OpenAPI schema, embedded resources, unique lists, rules. Rules are skipped if the object
has wrong types. Server-side apply types: lists and maps merge by key; objects below a schema that preserves unknown
fields may have untyped fields.
"""

from __future__ import annotations

from contextvars import ContextVar

from pilothouse.apiserver.offload import NeedsOffload, is_offloaded
from pilothouse.extensions.schema.checks import compile_check, run_check, validate_list_types
from pilothouse.extensions.schema.correlation import Link
from pilothouse.extensions.schema.defaulting import Defaulter, defaulter, drop_meaningless_nulls
from pilothouse.extensions.schema.embedded import coerce, validate_embedded
from pilothouse.extensions.schema.metrics import RATCHETING
from pilothouse.extensions.schema.pruning import object_pruner
from pilothouse.extensions.schema.rules import evaluation
from pilothouse.extensions.schema.structural import Structural, structural
from pilothouse.machinery.apply.atoms import DEDUCED, UNTYPED_ATOMIC, Atom, ListAtom, MapAtom, Scalar, atom_of
from pilothouse.machinery.cel.environment import CompilationFailed
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import NOWHERE, Errors, ErrorType, FieldError, Path, invalid
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.tree import object_meta_type

_ROOT = Path()
_COMPILED_INLINE = 40
"""Number of rules that may be compiled on the event loop; each takes 0.4 ms."""
_tolerated: ContextVar[list[str]] = ContextVar("tolerated_errors")
_BLOCKING = {
    ErrorType.NOT_SUPPORTED,
    ErrorType.REQUIRED,
    ErrorType.TOO_LONG,
    ErrorType.TOO_MANY,
    ErrorType.TYPE_INVALID,
}
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


@dataclass(frozen=True, slots=True)
class OtherErrors:
    """Errors of other validators, which also decide whether rules are run."""

    before: tuple[FieldError, ...] = ()
    """Metadata errors; not reported again."""
    between: tuple[FieldError, ...] = ()
    """Errors of the scale subresource; reported after the errors of the schema."""


NO_OTHER_ERRORS = OtherErrors()


class CompiledSchema:
    """The compiled schema of one version."""

    def __init__(self, schema: Json | None, *, preserve_unknown_fields: bool) -> None:
        self.structural: Structural | None = structural(schema) if schema is not None else None
        self._preserves = preserve_unknown_fields
        self._rule_count = evaluation.count_rules(self.structural) if self.structural is not None else 0
        self._compiled_rules: evaluation.RuleNode | None = None
        self._prune = object_pruner(self.structural)
        self._default: Defaulter = defaulter(self.structural)
        self._check = compile_check(schema or {})
        status = ((schema or {}).get("properties") or {}).get("status")
        self._status_check = compile_check(status) if status is not None else None
        self.atom: Atom = object_atom(self.structural, preserve_unknown_fields=preserve_unknown_fields)
        """The merge behaviour for server-side apply."""

    def prune(self, obj: Json, *, drop_invalid: bool = False) -> list[str]:
        """Drop unknown fields and meaningless nulls, and return `unknown field "spec.x"` for each dropped field.

        Raises MalformedEmbeddedResource, unless `drop_invalid` allows dropping malformed parts of embedded resources.
        """
        unknown: list[str] = []
        if not self._preserves:
            unknown += self._prune(obj)
            drop_meaningless_nulls(obj, self.structural)
        if self.structural is not None and self.structural.has_embedded_resources:
            unknown += sorted(coerce(obj, self.structural, _ROOT, drop_invalid=drop_invalid))
        return [f"unknown field {quote(path)}" for path in unknown]

    def default(self, obj: Json) -> None:
        self._default(obj)

    def validate(self, obj: Json, *, path: Path = _ROOT, seen: OtherErrors = NO_OTHER_ERRORS) -> Errors:
        errors = [*run_check(self._check, obj, path=path), *seen.between]
        errors += [*self._embedded_errors(obj, path), *self._list_type_errors(obj, None, path)]
        yield from self._with_rules(errors, seen, obj, path)

    def validate_update(
        self, obj: Json, old: Json, *, path: Path = _ROOT, seen: OtherErrors = NO_OTHER_ERRORS
    ) -> Errors:
        """Like `validate`, but tolerate errors in unchanged parts."""
        link = self._link(obj, old)
        errors = [*run_check(self._check, obj, path=path, link=link), *seen.between]
        errors += [*self._embedded_errors(obj, path), *self._list_type_errors(obj, old, path)]
        yield from self._ratcheted(errors, seen, obj, path, link)

    def validate_status_update(self, obj: Json, old: Json, *, seen: OtherErrors = NO_OTHER_ERRORS) -> Errors:
        """Validate the status against the schema, and the whole object against the rules."""
        errors: list[FieldError] = []
        link = self._link(obj, old)
        if "status" in obj and self._status_check is not None:
            was = link.key("status") if link else None
            errors += run_check(self._status_check, obj["status"], path=_ROOT.child("status"), link=was)
        errors += [*seen.between, *self._list_type_errors(obj, old, _ROOT)]
        yield from self._ratcheted(errors, seen, obj, _ROOT, link)

    def validate_unread(self, obj: Json, old: Json | None) -> Errors:
        """Like `validate` and `validate_update`, without value checks."""
        errors = [*self._embedded_errors(obj, _ROOT), *self._list_type_errors(obj, old, _ROOT)]
        link = self._link(obj, old) if old is not None else None
        yield from self._with_rules(errors, NO_OTHER_ERRORS, obj, _ROOT, link)

    def _ratcheted(
        self, errors: list[FieldError], seen: OtherErrors, obj: Json, path: Path, link: Link | None
    ) -> Errors:
        yield from self._with_rules(errors, seen, obj, path, link)
        if link is not None:
            RATCHETING.observe(link.time.seconds)

    def _with_rules(
        self, errors: list[FieldError], seen: OtherErrors, obj: Json, path: Path, link: Link | None = None
    ) -> Errors:
        yield from errors
        _tolerated.set([])
        try:
            rules = self._rules
        except CompilationFailed as failure:
            yield invalid(path, "object", f"rule compile error: {failure}")
            return
        if rules is None:
            return
        if any(error.type in _BLOCKING for error in (*seen.before, *errors)):
            yield invalid(Path(), None, _UNCHECKED)
            return
        run = evaluation.RuleRun()
        yield from evaluation.validate_rules(rules, obj, link.old if link else None, path, link=link, run=run)
        _tolerated.set([str(error) for error in run.tolerated])

    @property
    def _rules(self) -> evaluation.RuleNode | None:
        """The rules, compiled with the first validation, because the compiler is slow to import.

        Raises NeedsOffload if the compilation would block the event loop. Not a cached_property: all schemas share
        its lock, so the event loop would wait for a thread that compiles another schema.
        """
        if self._compiled_rules is None and self.structural is not None and self._rule_count:
            if self._rule_count > _COMPILED_INLINE and not is_offloaded():
                raise NeedsOffload
            self._compiled_rules = evaluation.rule_node(self.structural, root=True)
        return self._compiled_rules

    def _link(self, obj: Json, old: Json) -> Link | None:
        return Link(obj, old, self.structural) if self.structural is not None else None

    def _embedded_errors(self, obj: Json, path: Path) -> Errors:
        return validate_embedded(obj, self.structural, path)

    def _list_type_errors(self, obj: Json, old: Json | None, path: Path) -> Errors:
        """Yield duplicate list items, unless the old object has duplicates."""
        if self.structural is None or not any(validate_list_types(obj, self.structural, NOWHERE)):
            return
        if old is None or not any(validate_list_types(old, self.structural, NOWHERE)):
            yield from validate_list_types(obj, self.structural, path)


def tolerated_errors() -> list[str]:
    """Return the warnings of the last update validated in this context: rule violations in unchanged parts."""
    return _tolerated.get()


def compile_schema(schema: Json | None, *, preserve_unknown_fields: bool) -> CompiledSchema:
    return CompiledSchema(schema, preserve_unknown_fields=preserve_unknown_fields)


_SCALARS = {"integer": Scalar.NUMERIC, "number": Scalar.NUMERIC, "boolean": Scalar.BOOLEAN}
_TEXT = Atom(Scalar.STRING)


def object_atom(schema: Structural | None, *, preserve_unknown_fields: bool) -> Atom:
    """Return the atom of a resource; DEDUCED without a schema."""
    if schema is None:
        return DEDUCED
    keeps = preserve_unknown_fields or schema.preserves_unknown_fields
    return Atom(map=_map(schema, keeps=keeps, resource=True))


def _atom(schema: Structural, *, keeps: bool) -> Atom:
    keeps = keeps or schema.preserves_unknown_fields
    if schema.int_or_string or not schema.type:
        return Atom(Scalar.UNTYPED, list=_list(schema, keeps=keeps), map=_map(schema, keeps=keeps))
    if schema.type == "object":
        return Atom(map=_map(schema, keeps=keeps))
    if schema.type == "array":
        return Atom(list=_list(schema, keeps=keeps))
    if schema.type == "string":
        return _TEXT if (schema.source.get("format") or "") in ("", "byte") else Atom(Scalar.UNTYPED)
    return Atom(_SCALARS.get(schema.type, Scalar.UNTYPED))


def _list(schema: Structural, *, keeps: bool) -> ListAtom:
    element = _atom(schema.items, keeps=keeps) if schema.items is not None else UNTYPED_ATOMIC
    if schema.list_type != "map" or schema.items is None:
        return ListAtom(element, associative=schema.list_type == "set")
    properties = schema.items.properties
    defaults = {key: properties[key].default for key in schema.map_keys if key in properties}
    known = {key: default for key, default in defaults.items() if default is not None}
    return ListAtom(element, associative=True, keys=schema.map_keys, defaults=known)


def _map(schema: Structural, *, keeps: bool, resource: bool = False) -> MapAtom:
    fields = {name: _atom(child, keeps=keeps) for name, child in schema.properties.items()}
    if resource or schema.embedded_resource:
        fields |= {"apiVersion": _TEXT, "kind": _TEXT, "metadata": atom_of(object_meta_type())}
    element = _atom(schema.additional, keeps=keeps) if schema.additional is not None else None
    if element is None and (schema.allows_additional or keeps or not fields):
        element = DEDUCED
    return MapAtom(fields, element, atomic=schema.map_type == "atomic")
