"""The plugins that run only where somebody asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from admission_requests import pod, writing
from whole_server import whole_server

from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.client.fake_clock import FakeClock
from pilothouse.kube.admission.always import AlwaysDeny
from pilothouse.kube.admission.deny_service_external_ips import DenyServiceExternalIPs
from pilothouse.kube.admission.event_rate_limit import EventRateLimit
from pilothouse.kube.admission.images import AlwaysPullImages
from pilothouse.kube.admission.owner_references import (
    MappedResource,
    OwnerReferencesPermissionEnforcement,
    mapped_resources,
)
from pilothouse.kube.admission.pod_placement import LimitPodHardAntiAffinityTopology, PodNodeSelector
from pilothouse.kube.admission.tolerations import ExtendedResourceToleration, PodTolerationRestriction
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import TooManyRequests
from pilothouse.machinery.status_error import StatusError


async def test_images_are_always_pulled() -> None:
    written = pod(volumes=[{"name": "v", "image": {"reference": "r", "pullPolicy": "Never"}}])
    await AlwaysPullImages().admit(writing(written))
    assert written["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert written["spec"]["volumes"][0]["image"]["pullPolicy"] == "Always"


async def test_a_pull_policy_that_something_else_changed_back_is_refused() -> None:
    written = pod(containers=[{"name": "c", "image": "i", "imagePullPolicy": "Never"}])
    with pytest.raises(Forbidden, match=r'spec\.containers\[0\]\.imagePullPolicy: Unsupported value: "Never"'):
        await AlwaysPullImages().validate(writing(written))


async def test_a_pod_without_new_images_keeps_its_pull_policies() -> None:
    await AlwaysPullImages().validate(writing(pod(), old=pod()))


async def test_a_pod_tolerates_the_taint_of_the_extended_resources_it_asks_for() -> None:
    asked = {"requests": {"example.com/gpu": "1", "cpu": "1"}}
    written = pod(containers=[{"name": "c", "resources": asked}])
    await ExtendedResourceToleration().admit(writing(written))
    wanted = {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert written["spec"]["tolerations"] == [wanted]


async def test_pods_may_keep_others_off_their_node_only() -> None:
    term = {"topologyKey": "topology.kubernetes.io/zone"}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    with pytest.raises(Forbidden, match="but only key kubernetes"):
        await LimitPodHardAntiAffinityTopology().validate(writing(pod(affinity=anti)))
    term["topologyKey"] = "kubernetes.io/hostname"
    await LimitPodHardAntiAffinityTopology().validate(writing(pod(affinity=anti)))


async def test_services_get_no_new_external_addresses() -> None:
    def service(*ips: str) -> Json:
        return {"metadata": {"name": "s"}, "spec": {"externalIPs": list(ips)}}

    plugin = DenyServiceExternalIPs()
    await plugin.validate(writing(service("1.1.1.1"), resource="services", old=service("1.1.1.1", "2.2.2.2")))
    with pytest.raises(Forbidden, match="Use of external IPs is denied by admission control"):
        await plugin.validate(writing(service("1.1.1.1"), resource="services"))


async def test_always_deny_denies() -> None:
    with pytest.raises(Forbidden, match="admission control is denying all modifications"):
        await AlwaysDeny().admit(writing(pod()))


NAMESPACE: Json = {"metadata": {"name": "default", "annotations": {}}}


async def namespace(name: str) -> Json | None:
    return NAMESPACE


async def test_pods_run_where_their_namespace_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        NAMESPACE["metadata"], "annotations", {"scheduler.alpha.kubernetes.io/node-selector": "env=test"}
    )
    written = pod(nodeSelector={"disk": "ssd"})
    await PodNodeSelector(namespace).admit(writing(written))
    assert written["spec"]["nodeSelector"] == {"env": "test", "disk": "ssd"}
    with pytest.raises(Forbidden, match="conflicts with its namespace node label selector"):
        await PodNodeSelector(namespace).admit(writing(pod(nodeSelector={"env": "live"})))


async def test_pods_may_not_leave_the_nodes_that_the_cluster_gives_their_namespace() -> None:
    config: Json = {"podNodeSelectorPluginConfig": {"default": "a=b", "clusterDefaultNodeSelector": "a=b"}}
    await PodNodeSelector(namespace, config).admit(writing(pod()))
    with pytest.raises(Forbidden, match="conflict with its namespace whitelist"):
        await PodNodeSelector(namespace, config).admit(writing(pod(nodeSelector={"c": "d"})))


async def test_pods_tolerate_what_the_cluster_says_and_nothing_that_it_does_not_allow() -> None:
    mine, other = {"key": "mine", "operator": "Exists"}, {"key": "other", "operator": "Exists"}
    plugin = PodTolerationRestriction(namespace, {"default": [mine], "whitelist": [mine]})
    written = pod()
    await plugin.admit(writing(written))
    assert written["spec"]["tolerations"] == [mine]
    with pytest.raises(StatusError, match="conflict with its cluster whitelist"):
        await plugin.admit(writing(pod(tolerations=[other])))


def event(name: str) -> Json:
    return {"metadata": {"name": name}, "involvedObject": {"name": name}}


async def test_a_flood_of_events_is_held_off_until_time_has_passed() -> None:
    clock = FakeClock()
    plugin = EventRateLimit({"limits": [{"type": "User", "qps": 1, "burst": 2, "cacheSize": 10}]}, clock)
    for _ in range(2):
        await plugin.validate(writing(event("a"), resource="events", kind="Event"))
    with pytest.raises(TooManyRequests, match="limit reached on type User for key u"):
        await plugin.validate(writing(event("a"), resource="events", kind="Event"))
    await plugin.validate(writing(event("a"), resource="events", kind="Event", user="other"))
    clock.advance(1.0)
    await plugin.validate(writing(event("a"), resource="events", kind="Event"))


def test_a_limit_that_limits_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        EventRateLimit({"limits": [{"type": "Server", "qps": 0, "burst": 1}]})
    with pytest.raises(ValueError, match="must not be empty"):
        EventRateLimit({})


class OnlyThese:
    """Allows what it was told, as verb, resource and subresource."""

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed

    async def authorize(self, attributes: Attributes) -> Answer:
        asked = f"{attributes.verb} {attributes.resource}/{attributes.subresource}".rstrip("/")
        return Answer(Decision.ALLOW if asked in self._allowed else Decision.NO_OPINION)


def owned(block: bool) -> Json:
    owner = {"apiVersion": "v1", "kind": "Secret", "name": "o", "uid": "1", "blockOwnerDeletion": block}
    return {"metadata": {"name": "p", "ownerReferences": [owner]}}


@pytest.mark.parametrize(
    ("allowed", "block", "why"),
    [
        ((), False, "cannot set an ownerRef on a resource you can't delete"),
        (("delete pods",), False, ""),
        (("delete pods",), True, "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't"),
        (("delete pods", "update secrets/finalizers"), True, ""),
        (("delete pods", "update */finalizers"), True, ""),
    ],
)
async def test_naming_an_owner_needs_leave_to_delete_and_blocking_one_to_set_its_finalizers(
    allowed: tuple[str, ...], block: bool, why: str
) -> None:
    plugin = OwnerReferencesPermissionEnforcement(OnlyThese(*allowed), lambda kind: [MappedResource("secrets", True)])
    request = writing(owned(block), old={"metadata": {"name": "p"}})
    if why:
        with pytest.raises(Forbidden, match=why):
            await plugin.validate(request)
    else:
        await plugin.validate(request)


async def test_on_a_server_a_namespace_comes_to_be_with_the_first_object_in_it(tmp_path: Path) -> None:
    async with whole_server(tmp_path, enable_admission_plugins="NamespaceAutoProvision") as api:
        created = await api.request("POST", "/api/v1/namespaces/new/configmaps", {"metadata": {"name": "a"}})
        assert created.status == 201
        assert (await api.request("GET", "/api/v1/namespaces/new")).status == 200


async def test_an_owner_of_a_kind_that_nobody_serves_can_not_be_blocked() -> None:
    plugin = OwnerReferencesPermissionEnforcement(OnlyThese(), lambda kind: [])
    with pytest.raises(Forbidden, match='no matches for kind "Secret" in version "v1"'):
        await plugin.validate(writing(owned(block=True)))


def test_the_resources_of_a_kind_are_those_that_discovery_shows() -> None:
    secrets = {"resource": "secrets", "responseKind": {"kind": "Secret"}, "scope": "Namespaced"}
    nodes = {"resource": "nodes", "responseKind": {"kind": "Node"}, "scope": "Cluster"}
    groups: list[Json] = [{"metadata": {}, "versions": [{"version": "v1", "resources": [secrets, nodes]}]}]
    assert mapped_resources(groups, GroupVersionKind("", "v1", "Node")) == [MappedResource("nodes", False)]
    assert mapped_resources(groups, GroupVersionKind("", "v2", "Node")) == []
    assert mapped_resources(groups, GroupVersionKind("apps", "v1", "Node")) == []
