"""Which server's word counts for a group version, and the order of groups and versions."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.aggregator.api_services_to_register import APIServicePriority
from pilothouse.aggregator.apiservice.strategy import GROUP_VERSION
from pilothouse.aggregator.discovery.manager import RankedVersion, local_versions, merged_groups
from pilothouse.apiserver.discovery.manager import GroupDocuments
from pilothouse.machinery.names import GroupVersion

_GROUP_VERSIONS = st.builds(
    GroupVersion, st.sampled_from(["a.io", "b.io", "c.io"]), st.sampled_from(["v1", "v2", "v1beta1"])
)
_PRIORITIES = st.builds(APIServicePriority, st.integers(1, 3), st.integers(1, 2))


def ranked(group: str, version: str, group_priority: int = 1000, version_priority: int = 15) -> RankedVersion:
    return RankedVersion(
        GroupVersion(group, version),
        APIServicePriority(group_priority, version_priority),
        {"version": version, "of": group},
    )


def order(*versions: RankedVersion) -> list[str]:
    return [
        f"{group['metadata']['name']}/{each['version']}"
        for group in merged_groups(versions)
        for each in group["versions"]
    ]


def local(name: str, *versions: str) -> GroupDocuments:
    return GroupDocuments(name, {}, {"metadata": {"name": name}, "versions": [{"version": each} for each in versions]})


def test_a_group_stands_where_the_version_that_asks_for_most_wants_it() -> None:
    assert order(ranked("a.io", "v1", 10), ranked("b.io", "v1", 50), ranked("a.io", "v2", 100)) == [
        "a.io/v2",
        "a.io/v1",
        "b.io/v1",
    ]


def test_groups_of_equal_priority_stand_by_name() -> None:
    assert order(ranked("b.io", "v1"), ranked("a.io", "v1")) == ["a.io/v1", "b.io/v1"]


def test_versions_stand_by_priority_and_then_as_kubernetes_prefers_them() -> None:
    versions = [
        ranked("a.io", "v1beta1"),
        ranked("a.io", "v1"),
        ranked("a.io", "v10"),
        ranked("a.io", "v1alpha1", version_priority=20),
    ]
    assert order(*versions) == ["a.io/v1alpha1", "a.io/v10", "a.io/v1", "a.io/v1beta1"]


def test_the_first_server_that_has_a_version_is_shown_and_the_group_has_the_versions_of_all() -> None:
    servers = [[local("a.io", "v1")], [local("a.io", "v1", "v2")]]
    servers[1][0].discovery["versions"][0]["second"] = True
    (group,) = merged_groups(local_versions(servers, {}))
    assert group["versions"] == [{"version": "v2"}, {"version": "v1"}]


def test_who_manages_apiservices_comes_first_and_custom_resources_where_nothing_is_known() -> None:
    table = {GroupVersion("apps", "v1"): APIServicePriority(17800, 15)}
    servers = [[local(GROUP_VERSION.group, "v1")], [local("apps", "v1")], [local("a.io", "v1")]]
    versions = list(local_versions(servers, table))
    assert order(*versions, ranked("z.io", "v1", 20000)) == [
        "apiregistration.k8s.io/v1",
        "z.io/v1",
        "apps/v1",
        "a.io/v1",
    ]


@settings(max_examples=60)
@given(st.dictionaries(_GROUP_VERSIONS, _PRIORITIES), st.randoms())
def test_the_document_does_not_depend_on_the_order_in_which_versions_came(
    priorities: dict[GroupVersion, APIServicePriority], random: Random
) -> None:
    versions = [RankedVersion(each, priority, {"version": each.version}) for each, priority in priorities.items()]
    shuffled = versions.copy()
    random.shuffle(shuffled)
    assert merged_groups(versions) == merged_groups(shuffled)


@settings(max_examples=60)
@given(st.dictionaries(_GROUP_VERSIONS, _PRIORITIES))
def test_every_version_is_shown_once_in_a_group_of_its_name(priorities: dict[GroupVersion, APIServicePriority]) -> None:
    shown = order(*(RankedVersion(each, priority, {"version": each.version}) for each, priority in priorities.items()))
    assert sorted(shown) == sorted(map(str, priorities))
