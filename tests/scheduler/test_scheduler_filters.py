"""Which nodes a pod can be on, plugin by plugin."""

from __future__ import annotations

import pytest
from modelled_cluster import HOSTNAME, ZONE, ModelledCluster, node, pod

from pilothouse.machinery.objects import Json

WEB = {"app": "web"}
SELECTS_WEB = {"matchLabels": WEB}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def near(key: str = HOSTNAME, **term: object) -> Json:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": SELECTS_WEB, **term}]}}}


def apart(key: str = HOSTNAME, **term: object) -> Json:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": SELECTS_WEB, **term}]}}}


def spread(key: str = ZONE, skew: int = 1, **more: object) -> Json:
    constraint = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": SELECTS_WEB, **more}]}


def node_affinity(**terms: object) -> Json:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [terms]}}}}


NO_SCHEDULE = [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]
TWO = (node("a", zone="1"), node("b", zone="2"))


CASES: list[tuple[str, tuple[Json, ...], Json, set[str]]] = [
    ("plain pods can be anywhere", TWO, pod(), {"a", "b"}),
    ("a request must fit", (node("a", cpu="1"), node("b")), pod(requests={"cpu": "2"}), {"b"}),
    ("what is taken is not free", (*TWO, pod(on="a", requests={"cpu": "3"})), pod(requests={"cpu": "2"}), {"b"}),
    (
        "a request of all that is left fits",
        (*TWO, pod(on="a", requests={"cpu": "3"})),
        pod(requests={"cpu": "1"}),
        {"a", "b"},
    ),
    (
        "extended resources",
        (node("a", allocatable={"e.com/gpu": "1"}), node("b")),
        pod(requests={"e.com/gpu": "1"}),
        {"a"},
    ),
    ("a node takes only so many pods", (node("a", pods="1"), node("b"), pod(on="a")), pod(), {"b"}),
    ("overhead counts", (node("a", cpu="1"), node("b")), pod(requests={"cpu": "1"}, overhead={"cpu": "1"}), {"b"}),
    (
        "the largest init container counts",
        (node("a", cpu="1"), node("b")),
        pod(initContainers=[{"name": "i", "resources": {"requests": {"cpu": "2"}}}]),
        {"b"},
    ),
    (
        "sidecars count beside the containers",
        (node("a", cpu="2"), node("b")),
        pod(
            requests={"cpu": "2"},
            initContainers=[{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
        ),
        {"b"},
    ),
    (
        "requests of the whole pod go before those of its containers",
        (node("a", cpu="1"), node("b")),
        pod(requests={"cpu": "500m"}, resources={"requests": {"cpu": "2"}}),
        {"b"},
    ),
    ("a cordoned node is for nobody", (node("a", unschedulable=True), node("b")), pod(), {"b"}),
    (
        "but for those that tolerate it",
        (node("a", unschedulable=True), node("b")),
        pod(tolerations=[{"operator": "Exists"}]),
        {"a", "b"},
    ),
    ("a taint keeps pods away", (node("a", taints=NO_SCHEDULE), node("b")), pod(), {"b"}),
    (
        "a toleration lets them come",
        (node("a", taints=NO_SCHEDULE), node("b")),
        pod(tolerations=[{"key": "gpu", "value": "a"}]),
        {"a", "b"},
    ),
    ("a node selector", (node("a", labels={"disk": "ssd"}), node("b")), pod(nodeSelector={"disk": "ssd"}), {"a"}),
    (
        "node affinity by expressions",
        (node("a", labels={"cores": "8"}), node("b", labels={"cores": "2"})),
        pod(**node_affinity(matchExpressions=[{"key": "cores", "operator": "Gt", "values": ["4"]}])),
        {"a"},
    ),
    (
        "node affinity by name",
        TWO,
        pod(**node_affinity(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["b"]}])),
        {"b"},
    ),
    ("a host port is taken once", (*TWO, pod(on="a", ports=[{"hostPort": 80}])), pod(ports=[{"hostPort": 80}]), {"b"}),
    (
        "a host port of another address is free",
        (*TWO, pod(on="a", ports=[{"hostPort": 80, "hostIP": "10.0.0.1"}])),
        pod(ports=[{"hostPort": 80, "hostIP": "10.0.0.2"}]),
        {"a", "b"},
    ),
    (
        "a host port of another protocol is free",
        (*TWO, pod(on="a", ports=[{"hostPort": 53, "protocol": "UDP"}])),
        pod(ports=[{"hostPort": 53}]),
        {"a", "b"},
    ),
    ("near others", (*TWO, pod(on="b", labels=WEB)), pod(**near()), {"b"}),
    ("near others of a zone", (*TWO, node("c", zone="2"), pod(on="b", labels=WEB)), pod(**near(ZONE)), {"b", "c"}),
    ("near others, of which there are none", TWO, pod(**near()), set()),
    ("near those like itself, as the first", TWO, pod(labels=WEB, **near()), {"a", "b"}),
    ("near others, but only in its namespace", (*TWO, pod(on="b", labels=WEB, namespace="o")), pod(**near()), set()),
    ("or in those it names", (*TWO, pod(on="b", labels=WEB, namespace="o")), pod(**near(namespaces=["o"])), {"b"}),
    ("or in all", (*TWO, pod(on="b", labels=WEB, namespace="o")), pod(**near(namespaceSelector={})), {"b"}),
    ("apart from others", (*TWO, pod(on="b", labels=WEB)), pod(**apart()), {"a"}),
    ("apart from others of a zone", (*TWO, node("c", zone="2"), pod(on="b", labels=WEB)), pod(**apart(ZONE)), {"a"}),
    ("others that want to be apart", (*TWO, pod(on="b", **apart())), pod(labels=WEB), {"a"}),
    ("others that want to be apart from others", (*TWO, pod(on="b", **apart())), pod(), {"a", "b"}),
    ("spread over zones", (*TWO, pod(on="a", labels=WEB)), pod(labels=WEB, **spread()), {"b"}),
    ("spread, with some tolerance", (*TWO, pod(on="a", labels=WEB)), pod(labels=WEB, **spread(skew=2)), {"a", "b"}),
    ("spread over nodes that have the label", (node("a"), node("b", zone="1")), pod(labels=WEB, **spread()), {"b"}),
    (
        "pods that go do not count",
        (
            *TWO,
            {
                **(gone := pod(on="a", labels=WEB)),
                "metadata": {**gone["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
            },
        ),
        pod(labels=WEB, **spread()),
        {"a", "b"},
    ),
    (
        "with fewer domains than wanted, the emptiest is yet to come",
        (*TWO, pod(on="a", labels=WEB), pod(on="b", labels=WEB)),
        pod(labels=WEB, **spread(minDomains=3)),
        set(),
    ),
    (
        "a zone that the pod can not go to does not count",
        (*TWO, pod(on="a", labels=WEB)),
        pod(labels=WEB, nodeSelector={HOSTNAME: "a"}, **spread()),
        {"a"},
    ),
    (
        "unless the policy says so",
        (*TWO, pod(on="a", labels=WEB)),
        pod(labels=WEB, nodeSelector={HOSTNAME: "a"}, **spread(nodeAffinityPolicy="Ignore")),
        set(),
    ),
    (
        "a tainted zone does not count if the policy says so",
        (node("a", zone="1"), node("b", zone="2", taints=NO_SCHEDULE), pod(on="a", labels=WEB)),
        pod(labels=WEB, **spread(nodeTaintsPolicy="Honor")),
        {"a"},
    ),
    (
        "only pods of the same revision count",
        (*TWO, pod(on="a", labels={**WEB, "hash": "1"})),
        pod(labels={**WEB, "hash": "2"}, **spread(matchLabelKeys=["hash"])),
        {"a", "b"},
    ),
]


@pytest.mark.parametrize(("objects", "wanted", "nodes"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_pod_can_be(objects: tuple[Json, ...], wanted: Json, nodes: set[str]) -> None:
    assert ModelledCluster(*objects).fitting(wanted) == nodes


def test_the_reasons_are_counted_and_ordered_as_upstream_does() -> None:
    cluster = ModelledCluster(node("a", cpu="1"), node("b", taints=NO_SCHEDULE), node("c", cpu="1", memory="1Mi"))
    reasons = "1 Insufficient memory, 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    assert cluster.why_not(pod(requests={"cpu": "2", "memory": "1Gi"})) == f"0/3 nodes are available: {reasons}"


def test_a_node_that_is_asked_for_by_name_and_not_there_is_a_reason_for_all_others() -> None:
    named = node_affinity(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["gone"]}])
    reason = "2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    assert ModelledCluster(*TWO).why_not(pod(**named)) == f"0/2 nodes are available: {reason}"


def test_claims_that_do_not_exist_are_the_only_reason() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    reason = 'persistentvolumeclaim "data" not found.'
    assert ModelledCluster(*TWO).why_not(pod(volumes=volumes)) == f"0/2 nodes are available: {reason}"


@pytest.mark.parametrize(("nodes", "looked_at"), [(50, 50), (100, 100), (500, 230), (5000, 500)])
def test_of_many_nodes_only_some_are_looked_at(nodes: int, looked_at: int) -> None:
    assert ModelledCluster().cycle._enough(nodes) == looked_at
