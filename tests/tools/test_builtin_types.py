"""The build of the built-in types: what its sources contradict each other in is said, and nothing is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pilothouse.client import Json
from tools.builtin_types.agreement import Disagreement, check_agreement
from tools.builtin_types.build import build
from tools.builtin_types.differences import OTHERS, Differences, structs_of
from tools.builtin_types.enums import with_enums
from tools.builtin_types.merging import merged, merged_structs
from tools.builtin_types.overlay import SHIPPED, AddedField, AddedStruct, Overlay, OverlayError, read_overlay
from tools.builtin_types.sources import BASE, INSTALLED, Types, go_structs, installed_types

CORE = "k8s.io.api.core.v1"
CONFIG_MAP, PORT = "io.k8s.api.core.v1.ConfigMap", "io.k8s.api.core.v1.ContainerPort"


@pytest.fixture(scope="module")
def types() -> Types:
    return installed_types()


def overlay(tmp_path: Path, text: str) -> Overlay:
    path = tmp_path / "overlay.toml"
    path.write_text(text)
    return read_overlay(path)


def adding(name: str, **more: Any) -> Overlay:
    row: dict[str, Any] = {"of": CONFIG_MAP, "name": name, "number": 5, "type": "string", "description": ""} | more
    return Overlay([], [AddedField(**row)], {})


def with_property(types: Types, definition: str, field: str, schema: Json) -> Types:
    changed = types.definitions[definition]
    changed = changed | {"properties": changed["properties"] | {field: schema}}
    return replace(types, definitions={**types.definitions, definition: changed})


def test_what_is_installed_agrees(types: Types) -> None:
    check_agreement(types)


def test_a_field_that_is_published_and_in_no_struct_is_a_disagreement(types: Types) -> None:
    with pytest.raises(Disagreement, match=r"ConfigMap.notes is \{'type': 'string'\} as published, None in its Go"):
        check_agreement(with_property(types, CONFIG_MAP, "notes", {"type": "string"}))


def test_a_field_whose_type_is_published_as_another_is_a_disagreement(types: Types) -> None:
    with pytest.raises(Disagreement, match=r"^\S+hostPort is .*int64.* as published, .*int32.* Go struct$"):
        check_agreement(with_property(types, PORT, "hostPort", {"type": "integer", "format": "int64"}))


def test_a_field_that_is_not_published_is_a_disagreement(types: Types) -> None:
    core = types.structs[CORE].replace("ConfigMap!:", "ConfigMap!: notes=5?:[]string")
    with pytest.raises(Disagreement, match=r"ConfigMap.notes is None as published, .*array"):
        check_agreement(replace(types, structs={**types.structs, CORE: core}))


def test_a_struct_that_is_missing_is_a_disagreement(types: Types) -> None:
    core = types.structs[CORE].replace("\nContainerPort:", "\nContainerPrt:")
    with pytest.raises(Disagreement, match=f"^{PORT} is published, and has no Go struct$"):
        check_agreement(replace(types, structs={**types.structs, CORE: core}))


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"number": 2}, "ConfigMap: data and notes are both number 2"),
        ({"type": "io.k8s.api.core.v1.Note"}, "refers to io.k8s.api.core.v1.Note, which is not published"),
        ({"type": f"[]{PORT}", "list_type": "map", "map_keys": ["port"]}, "a list by keys, and its items lack port"),
        ({"type": "[]string", "list_type": "bag"}, "a list of type bag, which there is not"),
        ({"type": f"[]{PORT}", "list_type": "map"}, "a list by keys, and its items lack any"),
    ],
)
def test_an_added_field_that_cannot_be_is_a_disagreement(types: Types, more: Json, problem: str) -> None:
    with pytest.raises(Disagreement, match=problem):
        check_agreement(merged(types, adding("notes", **more)))


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        (adding("data"), f"{CONFIG_MAP} has a field data already"),
        (adding("name", of="io.k8s.api.core.v1.VolumeSource"), "io.k8s.api.core.v1.Volume has a field name already"),
        (Overlay([AddedStruct(name=PORT, description="")], [], {}), f"there is a struct {PORT} already"),
        (Overlay([AddedStruct(name="io.k8s.api.x.v1.A", description="")], [], {}), "a package that has no Go structs"),
        (adding("notes", of="io.k8s.api.core.v1.Nothing"), "there is no struct io.k8s.api.core.v1.Nothing"),
        (
            Overlay([], [], {f"{CONFIG_MAP}.notes": 1}),
            f"no field {CONFIG_MAP}.notes that could have a default",
        ),
    ],
)
def test_what_has_no_place_in_the_types_is_refused(types: Types, added: Overlay, problem: str) -> None:
    with pytest.raises(OverlayError, match=problem):
        merged(types, added)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[field]]\nname = "a"\nnumbr = 3', "a: unknown: numbr"),
        ('[[field]]\nname = "a"', "a: .* missing .* 'of', 'number', 'type', and 'description'"),
        ('[[struct]]\nname = "a"', "a: .* missing .* 'description'"),
        ("[field_defaults]", "unknown: field_defaults"),
        ('[[struct]]\nname = "a"\ndescription = ""\n' * 2, "declared twice: a"),
    ],
)
def test_a_table_that_lacks_something_or_has_too_much_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(OverlayError, match=problem):
        overlay(tmp_path, text)


def test_a_build_that_fails_leaves_what_was_there(types: Types, tmp_path: Path) -> None:
    (tmp_path / "definitions.json").write_text("as before")
    with pytest.raises(Disagreement):
        build({BASE: types}, adding("notes", number=2), tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["as before"]


def test_a_field_of_an_inlined_struct_is_published_where_json_shows_it(types: Types) -> None:
    """VolumeSource is inlined in Volume, and has no definition of its own."""
    added = adding("tape", of="io.k8s.api.core.v1.VolumeSource", number=40, type="io.k8s.api.core.v1.NFSVolumeSource")
    found = merged(types, added)
    check_agreement(found)
    changed = {name for name, schema in found.definitions.items() if schema != types.definitions[name]}
    assert changed == {"io.k8s.api.core.v1.Volume"}
    assert found.structs[CORE].splitlines() != types.structs[CORE].splitlines()


def test_what_is_installed_was_built_from_the_sources_that_are_here(types: Types) -> None:
    """Where this fails, an edit of the sources was not followed by `pip install -e .`."""
    overlay = read_overlay(SHIPPED)
    assert types.structs == merged_structs(go_structs(), overlay)
    assert types.defaults == overlay.defaults


@pytest.mark.parametrize("version", OTHERS)
def test_installed_packages_of_another_version_are_the_packages_that_differ(version: str) -> None:
    """Where this fails, an edit of the sources was not followed by `pip install -e .`."""
    overlay, base = read_overlay(SHIPPED), go_structs()
    structs = merged_structs(structs_of(version, base), overlay)
    differing = {name: structs.get(name, "") for name in base.keys() | structs if base.get(name) != structs.get(name)}
    installed = {path.stem: path.read_text() for path in (INSTALLED / version).glob("*.txt")}
    assert installed == differing


def test_a_difference_replaces_adds_and_removes_structs(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"a": "use m x\nA: a=1:string\nC: c=1:string\n", "b": "B: b=1:string\n"}
    found = Differences(structs={"a": "-C\nA!: a=1:string d=2:bool\nB: b=1:m.X\n", "b": ""})
    monkeypatch.setattr("tools.builtin_types.differences.differences", lambda _: found)
    assert structs_of("1.35", given) == {"a": "use m x\nA!: a=1:string d=2:bool\nB: b=1:m.X\n"}


def test_a_field_shows_the_enum_that_is_its_go_type(types: Types) -> None:
    shown = with_enums(with_property(types, PORT, "protocol", {"type": "string", "description": "Which."}))
    protocol = shown.definitions[PORT]["properties"]["protocol"]
    assert protocol["enum"] == ["SCTP", "TCP", "UDP"]
    assert protocol["description"].startswith('Which.\n\nPossible enum values:\n - `"SCTP"` is the SCTP protocol.\n')
