"""The API reference, made from the definitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pilothouse.builder import AGE, APIServer, Column, ListMap, Minimum, Resource, Rule, Scale
from pilothouse.scaffold.reference import Field, fields_of, page, reference, type_of

server = APIServer(group="boats.example.com")


@dataclass
class Mast:
    name: str
    """How it is called | known."""
    height: Annotated[int, Minimum(1)] = 1


@server.resource(version="v1", short_names=["bo"], deprecated="")
class Boat(Resource):
    """A boat floats."""

    @dataclass
    class Spec:
        owner: str
        color: Literal["red", "blue"] = "red"
        masts: Annotated[list[Mast], ListMap("name")] = field(default_factory=list)
        flags: Annotated[dict[str, str], Rule("size(self) < 9")] = field(default_factory=dict)

    @dataclass
    class Status:
        replicas: int = 0

    columns = (Column("Color", ".spec.color", description="Of the hull."), AGE)
    scale = Scale(spec=".spec.crew")


@dataclass
class Launch:
    speed: int = 0
    """In knots."""


@Boat.subresource("launch")
async def launch(boat: Boat, body: Launch) -> None:
    """Put it to sea."""


@Boat.subresource("log", verb="connect")
async def log(boat: Boat, request: object) -> str:
    return ""


def test_a_page_says_all_that_the_definition_does() -> None:
    assert page(server.kinds[0]).splitlines() == [
        "# Boat",
        "",
        "| Group | Resource | Scope | Short names | Categories |",
        "|---|---|---|---|---|",
        "| `boats.example.com` | `boats` | Namespaced | `bo` |  |",
        "",
        "## boats.example.com/v1",
        "",
        "**Deprecated.**",
        "",
        "A boat floats.",
        "",
        "### Fields",
        "",
        "| Field | Type | Required | Default | Description |",
        "|---|---|---|---|---|",
        "| `spec` | object | yes |  |  |",
        "| `spec.owner` | string | yes |  |  |",
        '| `spec.color` | string |  | `"red"` | One of `"red"`, `"blue"`. |',
        "| `spec.masts` | []object |  |  |  |",
        "| `spec.masts[].name` | string | yes |  | How it is called \\| known. |",
        "| `spec.masts[].height` | integer (int64) |  | `1` | Must be: at least 1. |",
        "| `spec.flags` | map[string]string |  |  | Rule: `size(self) < 9`. |",
        "| `status` | object |  |  |  |",
        "| `status.replicas` | integer (int64) |  |  |  |",
        "",
        "### Subresources",
        "",
        "| Subresource | Verbs | Description |",
        "|---|---|---|",
        "| `status` | get, update, patch | The observed state of the object. |",
        "| `scale` | get, update, patch | The replicas of the object. |",
        "| `launch` | create | Put it to sea. |",
        "| `log` | connect |  |",
        "",
        "#### The body of launch: Launch",
        "",
        "| Field | Type | Required | Default | Description |",
        "|---|---|---|---|---|",
        "| `speed` | integer (int64) |  |  | In knots. |",
        "",
        "### Columns",
        "",
        "| Column | Type | Field | Description |",
        "|---|---|---|---|",
        "| Color | string | `.spec.color` | Of the hull. |",
        "| Age | date | `.metadata.creationTimestamp` |  |",
    ]


def test_the_reference_has_a_chapter_for_each_kind() -> None:
    assert reference(server).startswith("# boats.example.com\n\n## Boat\n")


def test_fields_inside_lists_and_maps_are_found() -> None:
    leaf = {"type": "object", "properties": {"x": {"x-kubernetes-int-or-string": True, "nullable": True}}}
    schema = {"properties": {"a": {"type": "object", "additionalProperties": {"type": "array", "items": leaf}}}}
    assert list(fields_of(schema)) == [
        Field("a", "map[string][]object", False, None, ""),
        Field("a{}[].x", "integer or string", False, None, "May be null."),
    ]


def test_a_field_of_any_type_says_so() -> None:
    assert type_of({"x-kubernetes-preserve-unknown-fields": True}) == "any"
