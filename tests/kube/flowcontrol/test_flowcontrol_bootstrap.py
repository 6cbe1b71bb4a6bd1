"""The bootstrap configuration: created, kept, and left alone where an operator has edited it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from pilothouse.apiserver.authn.tokens import loopback_user
from pilothouse.apiserver.flowcontrol.mandatory import MANDATORY_LEVELS, MANDATORY_SCHEMAS
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.registry.options import DeleteOptions, ListOptions, WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.kube.flowcontrol.ensurer import (
    AUTO_UPDATE,
    SUGGESTED_LEVELS,
    SUGGESTED_SCHEMAS,
    BootstrapConfigurationEnsurer,
    revise,
)
from pilothouse.kube.flowcontrol.flow_schemas import FLOW_SCHEMAS
from pilothouse.kube.flowcontrol.priority_levels import PRIORITY_LEVELS
from pilothouse.machinery.objects import Json, name_of, resource_version_of

SPEC = SUGGESTED_LEVELS["system"]
OTHER = SUGGESTED_LEVELS["node-high"]


@pytest.fixture
async def registries(tmp_path: Path) -> AsyncIterator[tuple[RegistryStore, RegistryStore]]:
    store = await SqliteStore.open(tmp_path)
    levels, schemas = RegistryStore(PRIORITY_LEVELS, store), RegistryStore(FLOW_SCHEMAS, store)
    for registry in (levels, schemas):
        await registry.start()
        await registry.wait_ready()
    yield levels, schemas
    for registry in (levels, schemas):
        await registry.stop()
    await store.close()


def context(registry: RegistryStore) -> RequestContext:
    return RequestContext("", registry.resource.group_resource, loopback_user(), warn=lambda text: None)


async def objects(registry: RegistryStore) -> dict[str, Json]:
    found = await registry.list(context(registry), ListOptions())
    return {name_of(obj): obj for obj in (stored.parse() for stored in found.objects)}


async def allow(*_: Any) -> None:
    """Admission has nothing to say here."""


async def test_everything_is_created_once(registries: tuple[RegistryStore, RegistryStore]) -> None:
    levels, schemas = registries
    ensurer = BootstrapConfigurationEnsurer(levels, schemas)
    await ensurer.ensure()
    first = [await objects(levels), await objects(schemas)]
    assert {name: obj["spec"] for name, obj in first[0].items()} == {**MANDATORY_LEVELS, **SUGGESTED_LEVELS}
    assert {name: obj["spec"] for name, obj in first[1].items()} == {**MANDATORY_SCHEMAS, **SUGGESTED_SCHEMAS}
    assert all(obj["metadata"]["annotations"] == {AUTO_UPDATE: "true"} for part in first for obj in part.values())
    await ensurer.ensure()
    assert [await objects(levels), await objects(schemas)] == first


async def test_what_was_deleted_comes_back_and_leftovers_go(
    registries: tuple[RegistryStore, RegistryStore],
) -> None:
    levels, schemas = registries
    ensurer = BootstrapConfigurationEnsurer(levels, schemas)
    await ensurer.ensure()
    await levels.delete(context(levels), "exempt", options=DeleteOptions(), validate=allow)
    for name, marks in (("leftover", {AUTO_UPDATE: "true"}), ("mine", {}), ("kept", {AUTO_UPDATE: "false"})):
        await _create(levels, name, marks)
    await ensurer.ensure()
    names = set(await objects(levels))
    assert "exempt" in names
    assert {"leftover", "mine", "kept"} & names == {"mine", "kept"}


async def _create(registry: RegistryStore, name: str, annotations: dict[str, str]) -> None:
    obj: Json = {
        "kind": "PriorityLevelConfiguration",
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "metadata": {"name": name, "annotations": annotations},
        "spec": deepcopy(OTHER),
    }
    await registry.create(context(registry), obj, options=WriteOptions(), validate=allow)


async def test_an_outdated_suggestion_is_brought_up_to_date(
    registries: tuple[RegistryStore, RegistryStore],
) -> None:
    levels, schemas = registries
    await _create(levels, "system", {AUTO_UPDATE: "true"})
    before = (await objects(levels))["system"]
    await BootstrapConfigurationEnsurer(levels, schemas).ensure()
    after = (await objects(levels))["system"]
    assert before["spec"] == OTHER
    assert after["spec"] == SPEC
    assert resource_version_of(after) != resource_version_of(before)


def stored(spec: Json, mark: str | None, generation: int = 1) -> Json:
    annotations = {} if mark is None else {AUTO_UPDATE: mark}
    return {"metadata": {"name": "x", "annotations": annotations, "generation": generation}, "spec": deepcopy(spec)}


@pytest.mark.parametrize(
    ("current", "mandatory", "spec", "mark"),
    [
        (stored(SPEC, "true"), False, None, None),
        (stored(OTHER, "true"), False, SPEC, "true"),
        (stored(OTHER, "false"), False, None, None),
        (stored(OTHER, None, generation=1), False, SPEC, "true"),
        (stored(OTHER, None, generation=2), False, OTHER, "false"),
        (stored(OTHER, "maybe", generation=2), False, OTHER, "false"),
        (stored(SPEC, None), False, SPEC, "true"),
        (stored(SPEC, "T"), False, None, None),
        (stored(OTHER, "false", generation=2), True, SPEC, "true"),
        (stored(SPEC, "false"), True, SPEC, "true"),
    ],
)
def test_only_objects_that_follow_the_server_are_revised(
    current: Json, mandatory: bool, spec: Json | None, mark: str | None
) -> None:
    revised = revise(current, SPEC, mandatory=mandatory)
    if spec is None:
        assert revised is None
        return
    assert revised is not None
    assert revised["spec"] == spec
    assert revised["metadata"]["annotations"][AUTO_UPDATE] == mark


def test_the_exempt_levels_own_numbers_belong_to_the_operator() -> None:
    fixed = MANDATORY_LEVELS["exempt"]
    tuned = stored({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 3, "lendablePercent": 5}}, "true")
    tuned["metadata"]["name"] = "exempt"
    assert revise(tuned, fixed, mandatory=True) is None
    bare = stored({"type": "Exempt"}, "true")
    bare["metadata"]["name"] = "exempt"
    revised = revise(bare, fixed, mandatory=True)
    assert revised is not None
    assert revised["spec"] == fixed
