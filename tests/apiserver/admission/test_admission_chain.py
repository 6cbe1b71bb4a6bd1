"""The chain: order, sides, operations, and the second round."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.names import GroupResource, GroupVersionKind, GroupVersionResource

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    CALLS.clear()


class Admits:
    def __init__(self, name: str, *, asks_again: bool = False, only: Operation | None = None) -> None:
        self.name = name
        self.asks_again = asks_again
        self.only = only

    def handles(self, operation: Operation) -> bool:
        return self.only in (None, operation)

    async def admit(self, attributes: Attributes) -> None:
        CALLS.append(f"{self.name} {int(attributes.reinvocation.is_reinvoke)}")
        attributes.reinvocation.should_reinvoke |= self.asks_again


class Refuses:
    name = "ChainTestRefuses"

    def handles(self, operation: Operation) -> bool:
        return True

    async def validate(self, attributes: Attributes) -> None:
        raise BadRequest("no")


def write(operation: Operation = Operation.CREATE, plural: str = "anys") -> Attributes:
    kind, resource = GroupVersionKind("", "v1", "Any"), GroupVersionResource("", "v1", plural)
    return Attributes(operation, kind, resource, "", "n", "x", User("u"), obj={})


async def test_plugins_run_in_order_and_only_for_their_operations() -> None:
    chain = AdmissionChain([Admits("a"), Admits("b", only=Operation.DELETE), Admits("c")])
    await chain.admit(write())
    await chain.validate(write())
    assert CALLS == ["a 0", "c 0"]


async def test_all_who_admit_are_asked_once_more_where_one_asks_for_it_and_no_more_than_that() -> None:
    chain = AdmissionChain([Admits("a"), Admits("b", asks_again=True)])
    await chain.admit(write())
    assert CALLS == ["a 0", "b 0", "a 1", "b 1"]


async def test_other_plugins_may_take_the_place_of_a_chains_own() -> None:
    chain = AdmissionChain([Admits("a")])
    chain.plugins = (Admits("b"),)
    await chain.admit(write())
    assert CALLS == ["b 0"]


async def test_what_is_refused_ends_the_chain_and_is_counted_as_refused() -> None:
    class Later(Refuses):
        name = "ChainTestLater"

        async def validate(self, attributes: Attributes) -> None:
            CALLS.append("later")

    with pytest.raises(BadRequest):
        await AdmissionChain([Refuses(), Later()]).validate(write())
    assert not CALLS
    shown = generate_latest(REGISTRY).decode()
    refused = 'name="ChainTestRefuses",operation="CREATE",rejected="true",type="validate"'
    assert f"apiserver_admission_controller_admission_duration_seconds_count{{{refused}}} 1.0" in shown
    assert 'apiserver_admission_step_admission_duration_seconds_summary_count{operation="CREATE"' in shown


async def test_a_plugin_that_names_its_resources_is_asked_about_no_others() -> None:
    class ForOthers(Admits):
        resources = (GroupResource("", "others"),)

    class ForThese(Admits):
        resources = (GroupResource("", "anys"),)

    await AdmissionChain([ForOthers("a"), ForThese("b")]).admit(write())
    assert CALLS == ["b 0"]


async def test_resources_that_came_and_went_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilothouse.apiserver.admission.chain._MOST_PHASES", 10)
    chain = AdmissionChain([Admits("a")])
    for number in range(25):
        await chain.admit(write(plural=f"things{number}"))
    assert CALLS == ["a 0"] * 25
    assert len(chain._admitting) <= 10
