"""Which groups and versions come first."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.aggregator.api_services_to_register import (
    APIServicePriority,
    api_services_to_register,
    make_api_service,
)
from pilothouse.aggregator.apiservice.apiservices import name_to_group_version, sorted_by_group_and_version
from pilothouse.controlplane.chain import API_VERSION_PRIORITIES
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of

IN_ORDER = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]


def made(name: str, group: int = 100, version: int = 10) -> Json:
    return make_api_service(name_to_group_version(name), APIServicePriority(group, version))


def names(groups: list[list[Json]]) -> list[list[str]]:
    return [[name_of(each) for each in members] for members in groups]


@given(st.permutations(IN_ORDER))
@settings(max_examples=20)
def test_versions_of_equal_priority_come_in_the_order_of_kubernetes_versions(given_order: list[str]) -> None:
    (group,) = sorted_by_group_and_version(made(f"{version}.example.com") for version in given_order)
    assert [each["spec"]["version"] for each in group] == IN_ORDER


def test_a_versions_priority_counts_for_more_than_what_it_is_called() -> None:
    groups = sorted_by_group_and_version([made("v2.a"), made("v1.a", version=20)])
    assert names(groups) == [["v1.a", "v2.a"]]


def test_a_group_stands_where_its_highest_priority_puts_it() -> None:
    groups = sorted_by_group_and_version([made("v1.a", 50), made("v1.b", 70), made("v2.a", 90)])
    assert names(groups) == [["v2.a", "v1.a"], ["v1.b"]]


def test_groups_of_equal_priority_come_by_the_name_of_their_first_api_service() -> None:
    groups = sorted_by_group_and_version([made("v2.a"), made("v1.c"), made("v1.b"), made("v3.c")])
    assert names(groups) == [["v1.b"], ["v3.c", "v1.c"], ["v2.a"]]


def test_what_is_served_without_a_priority_gets_no_api_service() -> None:
    paths = ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/example.com/v1", "/healthz/a/b"]
    found = api_services_to_register(paths, API_VERSION_PRIORITIES)
    assert [name_of(each) for each in found] == ["v1.", "v1.apps"]


def test_the_legacy_groups_name_ends_in_a_dot() -> None:
    assert name_to_group_version("v1.") == GroupVersion("", "v1")
    assert name_to_group_version("v1.rbac.authorization.k8s.io") == GroupVersion("rbac.authorization.k8s.io", "v1")
