"""Kinds: typed objects over JSON, and definitions that a server accepts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from pydantic.alias_generators import to_camel

from pilothouse.builder import Column, Default, ListMap, Minimum, Pattern, Rule, Scale
from pilothouse.client import Json
from pilothouse.operator import Condition, Object, ObjectMeta, Status, definitions, kind, to_json
from pilothouse.testing import API

GROUP = "demo.example.com"


class BoatStatus(Status):
    port: str = ""
    replicas: int = 0


@kind(group=GROUP, version="v1", status=BoatStatus)
class Plain(Object[BoatStatus]):
    """A boat."""

    length: Annotated[int, Minimum(1)]
    flag_color: Annotated[str, Default("blue")]
    crew: Annotated[list[dict[str, str]], ListMap("name")] = field(default_factory=list)


@kind(group=GROUP, version="v1", status=BoatStatus)
@dataclass
class Data:
    length: Annotated[int, Minimum(1)]
    flag_color: Annotated[str, Default("blue")] = "blue"


@kind(group=GROUP, version="v1", status=BoatStatus)
@dataclass(slots=True)
class Slotted:
    length: Annotated[int, Minimum(1)]
    flag_color: str = "blue"


@kind(group=GROUP, version="v1", status=BoatStatus)
class Struct(msgspec.Struct, kw_only=True):
    length: Annotated[int, Minimum(1)]
    flag_color: str = "blue"


@kind(group=GROUP, version="v1", status=BoatStatus)
class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=to_camel, populate_by_name=True)

    length: Annotated[int, pydantic.Field(ge=1)]
    flag_color: str = "blue"


FORMS: list[Any] = [Data, Slotted, Struct, Model]


def stored(kind_: str, **parts: Any) -> Json:
    meta = {"name": "ann", "generation": 4, "labels": {"a": "1"}, "managedFields": [{"manager": "x"}]}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind_, "metadata": meta, "spec": {"length": 3}, **parts}


@pytest.mark.parametrize("cls", FORMS)
def test_an_object_reads_and_writes_its_json(cls: Any) -> None:
    json = stored(cls.__name__, status={"port": "Cork", "undeclared": 1})
    json["spec"]["undeclared"] = {"kept": True}
    boat = cls.__kind__.read(json)
    assert (boat.length, boat.flag_color, boat.metadata.name, boat.status.port) == (3, "blue", "ann", "Cork")
    assert to_json(boat) == json
    boat.status.port = "Hull"
    boat.metadata.labels["b"] = "2"
    boat.length = 5
    changed = to_json(boat)
    assert changed["status"] == {"port": "Hull", "undeclared": 1}
    assert changed["metadata"] == {**json["metadata"], "labels": {"a": "1", "b": "2"}}
    assert changed["spec"]["length"] == 5
    assert changed["spec"]["undeclared"] == {"kept": True}


@pytest.mark.parametrize("cls", FORMS)
def test_forms_of_one_kind_have_one_schema(cls: Any) -> None:
    schema = cls.__kind__.schema()["properties"]["spec"]
    assert schema["required"] == ["length"]
    assert schema["properties"]["length"]["minimum"] == 1
    assert schema["properties"]["flagColor"]["type"] == "string"


def test_a_new_object_has_the_names_of_its_kind() -> None:
    boat = Plain(length=2, flag_color="red", metadata=ObjectMeta(name="ann", namespace="port"))  # type: ignore[call-arg]
    boat.status.conditions.set(Condition("Ready", False, "Built"))
    json = to_json(boat)
    assert (json["apiVersion"], json["kind"]) == (f"{GROUP}/v1", "Plain")
    assert json["metadata"] == {"name": "ann", "namespace": "port"}
    assert json["spec"] == {"length": 2, "flagColor": "red"}
    assert json["status"]["conditions"][0]["status"] == "False"


def test_a_status_without_declaration_takes_any_field() -> None:
    @kind(group=GROUP, version="v1", status=True)
    class Raft(Object):
        length: int = 1

    raft = Raft.__kind__.read(stored("Raft", status={"phase": "Afloat", "speed": 3}))  # type: ignore[attr-defined]
    assert raft.status["phase"] == "Afloat"
    raft.status["phase"] = "Sunk"
    assert to_json(raft)["status"] == {"phase": "Sunk", "speed": 3}


def test_a_kind_without_status_says_how_to_get_one() -> None:
    @kind(group=GROUP, version="v1")
    class Stone:
        weight: int = 1

    with pytest.raises(AttributeError, match="declare @kind"):
        Stone().status  # type: ignore[attr-defined]  # noqa: B018


def test_one_version_of_a_kind_is_stored() -> None:
    def version(name: str, storage: bool) -> type:
        @kind(group=GROUP, version=name, kind="Boat", storage=storage)
        class Boat:
            length: int = 1

        return Boat

    (boats,) = definitions(version("v1", True), version("v1beta1", False))
    assert [(one["name"], one["storage"]) for one in boats["spec"]["versions"]] == [("v1", True), ("v1beta1", False)]
    with pytest.raises(ValueError, match=r"exactly one version of boats\.demo\.example\.com"):
        definitions(version("v1", True), version("v2", True))


async def test_a_server_accepts_and_enforces_a_definition(api: API) -> None:
    @kind(
        group=GROUP,
        version="v1",
        scope="Cluster",
        status=BoatStatus,
        short_names=["fl"],
        categories=["all"],
        columns=[Column("Size", ".spec.replicas")],
        selectable_fields=[".spec.colour"],
        scale=Scale(),
        rules=[Rule("self.metadata.name != 'bad'", message="a bad name")],
    )
    class Fleet:
        replicas: Annotated[int, Minimum(1)] = 3
        colour: Annotated[str, Pattern("^[a-z]+$")] = "blue"

    client = api.client(in_process=True)
    crds = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    made = await crds.apply(definitions(Fleet)[0], field_manager="test")
    assert made["spec"]["names"]["shortNames"] == ["fl"]
    assert not [
        one for one in (made.get("status") or {}).get("conditions") or () if one["type"] == "NonStructuralSchema"
    ]
