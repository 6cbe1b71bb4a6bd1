"""Which controllers a `--controllers` list enables."""

from __future__ import annotations

import inspect

import pytest

from pilothouse.controllers.manager import load
from pilothouse.controllers.table import CONTROLLERS, ControllerDescriptor, enabled, unknown
from pilothouse.controlplane.options.completion import InvalidOptions, complete
from pilothouse.controlplane.options.options import Options

KNOWN = {each.name for each in CONTROLLERS}
SIMULATED = {each.name for each in CONTROLLERS if each.with_simulation}
EVERYTHING = {each.name for each in CONTROLLERS if each.on_by_default} - SIMULATED


def chosen(*choice: str) -> set[str]:
    return {each.name for each in enabled(choice, has_feature=lambda name: True)}


def test_a_star_enables_all_and_a_minus_star_none() -> None:
    assert chosen("*") == EVERYTHING
    assert chosen("-*") == set()


def test_a_few_must_be_asked_for() -> None:
    assert {"bootstrap-signer-controller", "token-cleaner-controller"} == KNOWN - EVERYTHING - SIMULATED
    assert chosen("*", "tokencleaner") == EVERYTHING | {"token-cleaner-controller"}


def test_a_single_controller_is_taken_out_or_put_in_by_its_name_or_its_old_one() -> None:
    assert chosen("*", "-namespace-controller") == EVERYTHING - {"namespace-controller"}
    assert chosen("*", "-namespace") == EVERYTHING - {"namespace-controller"}
    assert chosen("namespace") == {"namespace-controller"}
    assert chosen("-*", "namespace-controller") == {"namespace-controller"}


def test_a_controller_whose_gate_is_off_cannot_even_be_asked_for() -> None:
    gated = {each.name for each in CONTROLLERS if each.feature}
    assert gated
    assert {each.name for each in enabled(["*", *gated])} == EVERYTHING - gated


def test_the_first_word_about_a_controller_counts() -> None:
    assert chosen("namespace", "-namespace-controller") == {"namespace-controller"}
    assert chosen("-namespace-controller", "namespace") == set()


def test_no_star_and_no_name_enables_nothing() -> None:
    assert chosen("-namespace") == set()


def test_names_that_nobody_has_are_refused_without_their_minus() -> None:
    assert list(unknown(["*", "-*", "namespace", "-foo", "bar-controller"])) == ["foo", "bar-controller"]
    with pytest.raises(InvalidOptions) as refused:
        complete(Options.parse(["--controllers=*,-foo"])).validate()
    assert str(refused.value) == '"foo" is not in the list of known controllers'


@pytest.mark.parametrize("descriptor", CONTROLLERS, ids=lambda descriptor: descriptor.name)
def test_every_controller_of_the_table_can_run(descriptor: ControllerDescriptor) -> None:
    assert inspect.iscoroutinefunction(load(descriptor))


def test_names_and_aliases_are_unique_and_in_order() -> None:
    names = [name for each in CONTROLLERS for name in each.names]
    assert len(names) == len(set(names))
    assert [each.name for each in CONTROLLERS] == sorted(KNOWN)


def test_the_leader_is_elected_where_the_store_can_be_shared() -> None:
    assert not complete(Options.parse([])).controllers.leader_elect
    assert complete(Options.parse(["--etcd-servers=http://127.0.0.1:2379"])).controllers.leader_elect
    assert complete(Options.parse(["--leader-elect"])).controllers.leader_elect
    given = ["--etcd-servers=http://127.0.0.1:2379", "--leader-elect=false"]
    assert not complete(Options.parse(given)).controllers.leader_elect


def test_times_that_make_no_sense_are_refused() -> None:
    line = ["--leader-elect", "--leader-elect-lease-duration=5s"]
    with pytest.raises(InvalidOptions, match="lease_duration must be greater than renew_deadline"):
        complete(Options.parse(line)).validate()


def test_the_bounds_of_the_endpoint_controllers_are_kept() -> None:
    line = (
        "--max-endpoints-per-slice=0 --concurrent-service-endpoint-syncs=51 --mirroring-max-endpoints-per-subset=1001"
    )
    with pytest.raises(InvalidOptions) as refused:
        complete(Options.parse(line.split())).validate()
    assert str(refused.value) == (
        "[concurrent-service-endpoint-syncs must not be more than 50, but got 51,"
        " max-endpoints-per-slice must not be less than 1, but got 0,"
        " mirroring-max-endpoints-per-subset must not be more than 1000, but got 1001]"
    )
