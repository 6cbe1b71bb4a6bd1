"""API reference of a server in Markdown, from the definitions of its kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.builder.kind import Kind
    from pilothouse.builder.resource import Resource
    from pilothouse.builder.server import APIServer


def reference(server: APIServer) -> str:
    """Return the reference of the server's kinds as a Markdown page."""
    return "\n".join([f"# {server.group}\n", *(page(kind, level=2) for kind in server.kinds)])


def page(kind: Kind, *, level: int = 1) -> str:
    """Return the page of a kind. `level` is the level of its heading."""
    return "\n".join(_page(kind, level))


def _page(kind: Kind, level: int) -> Iterator[str]:
    definition = kind.definition()
    spec, mark = definition["spec"], "#" * level
    yield f"{mark} {spec['names']['kind']}\n"
    names = spec["names"]
    lists = (", ".join(map(_code, names.get(key, ()))) for key in ("shortNames", "categories"))
    yield from _table(
        ("Group", "Resource", "Scope", "Short names", "Categories"),
        [[_code(spec["group"]), _code(names["plural"]), spec["scope"], *lists]],
    )
    for version in spec["versions"]:
        yield f"{mark}# {kind.group}/{version['name']}\n"
        yield from _version(kind.of(version["name"]), version, f"{mark}##")


def _version(cls: type[Resource], version: Json, mark: str) -> Iterator[str]:
    schema = version["schema"]["openAPIV3Schema"]
    if version.get("deprecated"):
        yield f"**Deprecated.** {version.get('deprecationWarning', '')}".rstrip() + "\n"
    if not version["served"]:
        yield "This version is not served.\n"
    if "description" in schema:
        yield f"{schema['description']}\n"
    yield f"{mark} Fields\n"
    yield from _fields(schema)
    yield from _subresources(cls, version, mark)
    if columns := version.get("additionalPrinterColumns"):
        yield f"{mark} Columns\n"
        rows = [
            [column["name"], column["type"], _code(column["jsonPath"]), column.get("description", "")]
            for column in columns
        ]
        yield from _table(("Column", "Type", "Field", "Description"), rows)


def _fields(schema: Json) -> Iterator[str]:
    structure = ("apiVersion", "kind", "metadata")
    rows = [_field(field) for field in fields_of(schema) if field.path not in structure]
    yield from _table(("Field", "Type", "Required", "Default", "Description"), rows)


def _field(field: Field) -> list[str]:
    default = "" if field.default is None else _code(field.default)
    return [_code(field.path), field.type, "yes" if field.required else "", default, field.description]


def _subresources(cls: type[Resource], version: Json, mark: str) -> Iterator[str]:
    rows = [
        [_code(name), "get, update, patch", _STANDARD_SUBRESOURCES[name]] for name in version.get("subresources", ())
    ]
    own = list(cls.subresources.values())
    rows += [[_code(sub.name), _verbs(sub.verb), (sub.function.__doc__ or "").strip()] for sub in own]
    if rows:
        yield f"{mark} Subresources\n"
        yield from _table(("Subresource", "Verbs", "Description"), rows)
    for sub in own:
        if sub.verb == "create":
            yield f"{mark}# The body of {sub.name}: {sub.body_kind}\n"
            yield from _fields(body_schema(cls, sub.name))


_STANDARD_SUBRESOURCES = {"status": "The observed state of the object.", "scale": "The replicas of the object."}


def body_schema(cls: type[Resource], subresource: str) -> Json:
    """Return the schema of the body of a subresource."""
    from pilothouse.builder.subresources import body_definition

    versions = body_definition(cls, cls.subresources[subresource]).definition["spec"]["versions"]
    schema: Json = versions[0]["schema"]["openAPIV3Schema"]
    return schema


def _verbs(verb: str) -> str:
    return "get, update, patch" if verb == "update" else verb


def _code(text: object) -> str:
    return f"`{text}`"


def _table(titles: tuple[str, ...], rows: list[list[str]]) -> Iterator[str]:
    yield _row(titles)
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield _row(row)
    yield ""


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} entries",
    "maxProperties": "at most {} entries",
    "multipleOf": "a multiple of {}",
    "pattern": "matches `{}`",
}


@dataclass(frozen=True, slots=True)
class Field:
    path: str
    """Path, such as spec.masts[].name."""
    type: str
    required: bool
    default: str | None
    """Default as JSON."""
    description: str
    """Description of the author, and constraints of the schema."""


def fields_of(schema: Json, path: str = "") -> Iterator[Field]:
    """Yield every field of an object, parents first."""
    required = schema.get("required") or ()
    for name, child in (schema.get("properties") or {}).items():
        field_path = f"{path}{name}"
        default = json.dumps(child["default"], ensure_ascii=False) if "default" in child else None
        yield Field(field_path, type_of(child), name in required, default, " ".join(_description(child)))
        inner, suffix = _innermost(child)
        yield from fields_of(inner, f"{field_path}{suffix}.")


def type_of(schema: Json) -> str:
    """Return the type in short form, such as []string or map[string]integer."""
    if "items" in schema:
        return f"[]{type_of(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map[string]{type_of(schema['additionalProperties'])}"
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = schema.get("type") or "any"
    return f"{kind} ({schema['format']})" if "format" in schema else kind


def _innermost(schema: Json) -> tuple[Json, str]:
    """Return the schema of the elements of nested lists and maps, and the path suffix."""
    suffix = ""
    while True:
        values = schema.get("additionalProperties")
        if "items" in schema:
            schema, suffix = schema["items"], f"{suffix}[]"
        elif isinstance(values, dict):
            schema, suffix = values, f"{suffix}{{}}"
        else:
            return schema, suffix


def _description(schema: Json) -> Iterator[str]:
    if "description" in schema:
        yield schema["description"]
    inner = schema.get("items", schema)
    if "enum" in inner:
        yield f"One of {', '.join(f'`{json.dumps(value)}`' for value in inner['enum'])}."
    if constraints := [text.format(schema[key]) for key, text in _BOUNDS.items() if key in schema]:
        yield f"Must be: {', '.join(constraints)}."
    if schema.get("nullable"):
        yield "May be null."
    for rule in schema.get("x-kubernetes-validations") or ():
        yield f"Rule: `{rule['rule']}`."
