"""Whatever graph of owners there is and whatever is deleted in it, the collector leaves what the model leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from controllers_on_a_server import ControlledServer, controlled_server, managed
from custom_resources import definition
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from owner_graphs import CLUSTER_ROLE, CONFIG_MAP, SECRET, WIDGET, Model, OwnerGraph, Reference, Thing

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = [CONFIG_MAP, SECRET, CLUSTER_ROLE, WIDGET]
NAMESPACES = ["gc-a", "gc-b"]
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # every failing example waits in vain: none is made smaller


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("gc-model")) as server, managed(server, "garbagecollector"):
        for namespace in NAMESPACES:
            await server.create_namespace(namespace)
        await server.install(definition())
        yield server


REFERENCES = st.lists(
    st.builds(Reference, st.integers(0, 30), wrong=st.sampled_from([False, False, False, True]), block=st.booleans()),
    max_size=3,
    unique_by=lambda reference: reference.owner,
)
CREATE = st.tuples(st.just("create"), st.builds(Thing, st.sampled_from(KINDS), st.sampled_from(NAMESPACES), REFERENCES))
OWN = st.tuples(st.just("own"), st.tuples(st.integers(0, 30), REFERENCES))
DELETE = st.tuples(
    st.just("delete"), st.tuples(st.integers(0, 30), st.sampled_from(["Background", "Foreground", "Orphan"]))
)
Step: TypeAlias = tuple[str, Any]
"""What is done, and the details of it that differ by what is done."""


def usable(references: list[Reference], model: Model, child: Thing, created: int) -> list[Reference]:
    """References to things that were created at some time, and that a child of its scope may have at all."""
    found = {each.owner % created: each for each in references} if created else {}
    owners = [Reference(number, each.wrong, each.block) for number, each in found.items()]
    if child.kind.namespaced:
        return owners
    return [each for each in owners if each.owner in model.things and not model.things[each.owner].kind.namespaced]


@given(st.lists(CREATE, min_size=4, max_size=10), st.lists(st.one_of(CREATE, OWN, DELETE, DELETE), max_size=10))
@settings(max_examples=12, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
async def test_the_collector_keeps_the_same_objects_as_the_model(
    server: ControlledServer, first: list[Step], then: list[Step]
) -> None:
    model, graph, created = Model(), OwnerGraph(server.client, KINDS), 0
    for step, detail in [*first, *then]:
        if step == "create":
            thing = Thing(detail.kind, detail.namespace, usable(detail.owners, model, detail, created))
            await graph.create(created, thing)
            model.things[created] = Thing(thing.kind, thing.namespace, list(thing.owners))
            created += 1
        elif step == "own" and (number := detail[0] % created) in model.things:
            thing = model.things[number]
            thing.owners = usable(detail[1], model, thing, created)
            await graph.own(number, thing)
        elif step == "delete" and (number := detail[0] % created) in model.things:
            await graph.delete(number, detail[1])
            model.delete(number, detail[1])
        model.settle()
        await graph.until(model)
    await graph.until_looked_after(NAMESPACES[0])
    assert await graph.state() == graph.expected(model)
