"""The crdRegistrationController: which versions are to have an APIService, while definitions come, change and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from custom_resources import definition, version
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.aggregator.crd_registration import CRDRegistrationController
from pilothouse.machinery.objects import Json, name_of

PLURALS = ("widgets", "gadgets", "things")
VERSIONS = ("v1", "v2", "v1beta1")


class Definitions:
    def __init__(self) -> None:
        self.by_name: dict[str, Json] = {}
        self._listeners: list[Callable[[list[Json]], None]] = []

    def get(self, name: str) -> Json | None:
        return self.by_name.get(name)

    def listen(self, changed: Callable[[list[Json]], None]) -> None:
        self._listeners.append(changed)

    async def wait_synced(self) -> None: ...

    def put(self, wanted: Json) -> None:
        self.by_name[name_of(wanted)] = wanted
        self._tell(wanted)

    def remove(self, name: str) -> None:
        gone = self.by_name.pop(name, None)
        if gone is not None:
            self._tell(gone)

    def _tell(self, changed: Json) -> None:
        for listener in self._listeners:
            listener([changed])


class Registration:
    """Remembers what is to be synced."""

    def __init__(self) -> None:
        self.to_sync: dict[str, Json] = {}
        self.removed: list[str] = []

    def add_api_service_to_sync_on_start(self, api_service: Json) -> None:
        raise AssertionError("definitions are synced continuously")

    def add_api_service_to_sync(self, api_service: Json) -> None:
        self.to_sync[name_of(api_service)] = api_service

    def remove_api_service_to_sync(self, name: str) -> None:
        self.to_sync.pop(name, None)
        self.removed.append(name)


@asynccontextmanager
async def running(definitions: Definitions) -> AsyncIterator[Registration]:
    registration = Registration()
    controller = CRDRegistrationController(definitions, registration)
    task = asyncio.create_task(controller.run())
    await controller.wait_for_initial_sync()
    yield registration
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def served(definitions: Definitions) -> set[str]:
    """What the definitions say, without regard to how they came to say it."""
    return {
        f"{each['name']}.{definition['spec']['group']}"
        for definition in definitions.by_name.values()
        for each in definition["spec"]["versions"]
        if each["served"]
    }


Change = tuple[str, dict[str, bool] | None]
changes: st.SearchStrategy[list[Change]] = st.lists(
    st.tuples(
        st.sampled_from(PLURALS),
        st.none() | st.dictionaries(st.sampled_from(VERSIONS), st.booleans(), min_size=1),
    ),
    max_size=12,
)


@given(changes)
@settings(max_examples=40, deadline=None)
def test_after_any_changes_exactly_the_served_versions_are_registered(steps: list[Change]) -> None:
    async def follow() -> None:
        definitions = Definitions()
        async with running(definitions) as registration:
            for plural, versions in steps:
                if versions is None:
                    definitions.remove(f"{plural}.example.com")
                else:
                    shown = [version(name, served=on) for name, on in versions.items()]
                    definitions.put(definition(*shown, plural=plural))
                await settle()
                assert set(registration.to_sync) == served(definitions)

    asyncio.run(follow())


async def test_the_api_service_of_a_version_has_a_low_priority() -> None:
    definitions = Definitions()
    async with running(definitions) as registration:
        definitions.put(definition())
        await settle()
        assert registration.to_sync["v1.example.com"]["spec"] == {
            "group": "example.com",
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 100,
        }


async def test_a_version_that_is_not_served_is_removed_at_the_start_too() -> None:
    definitions = Definitions()
    registration = Registration()
    controller = CRDRegistrationController(definitions, registration)
    definitions.put(definition(version(), version("v2", served=False)))
    task = asyncio.create_task(controller.run())
    await controller.wait_for_initial_sync()
    assert (set(registration.to_sync), registration.removed[:1]) == ({"v1.example.com"}, ["v2.example.com"])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
