"""The reference of a server's API as Markdown, from the definitions of its kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pilothouse.machinery.objects import Json
from pilothouse.scaffold.fields import Field, fields_of

if TYPE_CHECKING:
    from pilothouse.builder.kind import Kind
    from pilothouse.builder.resource import Resource
    from pilothouse.builder.server import APIServer


def reference(server: APIServer) -> str:
    """Return one page with all kinds."""
    return "\n".join([f"# {server.group}\n", *(page(kind, level=2) for kind in server.kinds)])


def page(kind: Kind, *, level: int = 1) -> str:
    """Return what there is to know about a kind; `level` is that of its heading."""
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
        rows = [[each["name"], each["type"], _code(each["jsonPath"]), each.get("description", "")] for each in columns]
        yield from _table(("Column", "Type", "Field", "Description"), rows)


def _fields(schema: Json) -> Iterator[str]:
    structure = ("apiVersion", "kind", "metadata")
    rows = [_field(each) for each in fields_of(schema) if each.path not in structure]
    yield from _table(("Field", "Type", "Required", "Default", "Description"), rows)


def _field(field: Field) -> list[str]:
    default = "" if field.default is None else _code(field.default)
    return [_code(field.path), field.type, "yes" if field.required else "", default, field.description]


def _subresources(cls: type[Resource], version: Json, mark: str) -> Iterator[str]:
    rows = [[_code(name), "get, update, patch", _OF_EVERY_KIND[name]] for name in version.get("subresources", ())]
    own = list(cls.subresources.values())
    rows += [[_code(each.name), _verbs(each.verb), (each.function.__doc__ or "").strip()] for each in own]
    if rows:
        yield f"{mark} Subresources\n"
        yield from _table(("Subresource", "Verbs", "Description"), rows)
    for each in own:
        if each.verb == "create":
            yield f"{mark}# The body of {each.name}: {each.body_kind}\n"
            yield from _fields(body_schema(cls, each.name))


_OF_EVERY_KIND = {"status": "What the server found out about the object.", "scale": "The replicas of the object."}


def body_schema(cls: type[Resource], subresource: str) -> Json:
    """Return the schema of what is sent to a subresource."""
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
