"""kwok's stages: their queries, templates and selectors, and pods that they drive."""

from __future__ import annotations

import random
from typing import Any

import pytest
from awaiting import until, until_all, until_gone
from whole_server import whole_server

from pilothouse.client import Json
from pilothouse.nodes.stages.functions import functions
from pilothouse.nodes.stages.pipeline import InvalidStage
from pilothouse.nodes.stages.queries import compile_query
from pilothouse.nodes.stages.stage import choose, read_stage
from pilothouse.nodes.stages.template import compile_template


class Around:
    node, kubelet_port = "n1", 10250

    def now(self) -> float:
        return 1_700_000_000.0

    def node_addresses(self, node: str) -> list[str]:
        return ["172.18.0.2"]

    def pod_addresses(self, node: str, host_network: bool, namespace: str, name: str) -> list[str]:
        return ["10.0.0.2", name]


FUNCTIONS = functions(Around())
POD: Json = {
    "metadata": {"name": "p", "annotations": {"a.b/c": "5s"}},
    "spec": {"containers": [{"name": "a", "ready": True}, {"name": "b"}], "hostNetwork": None},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (".metadata.name", ["p"]),
        (".metadata.nothing.more", []),
        ('.metadata.annotations["a.b/c"]', ["5s"]),
        (".spec.containers.[].name", ["a", "b"]),
        (".spec.containers[].name", ["a", "b"]),
        (".spec.containers[1].name", ["b"]),
        (".spec.containers[-1].name", ["b"]),
        ('.status.conditions.[] | select( .type == "Ready" ) | .status', ["True"]),
        ('.status.conditions[] | select(.type != "Ready") | .type', ["Other"]),
        (".spec.containers.[].ready", [True]),
        (".spec.hostNetwork", []),
    ],
)
def test_queries_find_what_is_there(query: str, found: list[Any]) -> None:
    assert compile_query(query)(POD) == found


@pytest.mark.parametrize("query", ["status.phase", ".a | length", ".a + 1", "select(.a)"])
def test_queries_that_are_not_understood_are_refused(query: str) -> None:
    with pytest.raises(InvalidStage, match="not supported"):
        compile_query(query)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("a {{ .metadata.name }} b", "a p b"),
        ("a {{- .metadata.name -}} b", "apb"),
        ("{{ .metadata.name | Quote }}{{/* nothing */}}", '"p"'),
        ("{{ $x := .metadata }}{{ $x.name }}", "p"),
        ('{{ $x := "a" }}{{ if true }}{{ $x = "b" }}{{ end }}{{ $x }}', "b"),
        ("{{ range .spec.containers }}{{ .name }},{{ end }}", "a,b,"),
        ("{{ range $i, $c := .spec.containers }}{{ $i }}{{ $c.name }}{{ end }}", "0a1b"),
        ("{{ range .spec.nothing }}x{{ else }}none{{ end }}", "none"),
        ("{{ with .status.nothing }}x{{ else }}{{ .metadata.name }}{{ end }}", "p"),
        ('{{ if eq .metadata.name "q" }}q{{ else if eq .metadata.name "p" }}yes{{ else }}no{{ end }}', "yes"),
        ('{{ or .nothing ( and true "" ) "last" }}', "last"),
        ("{{ if not (or .a .b) }}neither{{ end }}", "neither"),
        ("{{ index .spec.containers 1 | YAML }}", "name: b\n"),
        ('{{ index .metadata.annotations "a.b/c" }}{{ index (or .nothing dict) "x" }}', "5s<no value>"),
        ('{{ printf "%s-%d" .metadata.name 3 }}{{ len .spec.containers }}', "p-32"),
        ("{{ Now }}", "2023-11-14T22:13:20.000000Z"),
        ('{{ NodeIPWith "n" }} {{ PodIPsWith "n" false "" "x" "" | len }} {{ NodeName }}', "172.18.0.2 2 n1"),
        ("{{ or .nothing `raw` }}", "raw"),
        (
            "{{ range NodeConditions }}{{ .type }} {{ end }}",
            "MemoryPressure DiskPressure PIDPressure NetworkUnavailable Ready ",
        ),
    ],
)
def test_templates_are_filled_as_go_fills_them(template: str, text: str) -> None:
    assert compile_template(template, FUNCTIONS)(POD) == text


@pytest.mark.parametrize(
    "template",
    ["{{ nothing }}", '{{ define "x" }}{{ end }}', "{{ if true }}", "{{ end }}", "{{ .a ? }}", "{{ (or .a .b }}"],
)
def test_templates_that_are_not_understood_are_refused(template: str) -> None:
    with pytest.raises(InvalidStage):
        compile_template(template, FUNCTIONS)


@pytest.mark.parametrize("template", ["{{ $x }}", "{{ .metadata }}", "{{ .metadata.name.x }}", '{{ printf "%9d" 1 }}'])
def test_templates_that_can_not_be_filled_say_so(template: str) -> None:
    with pytest.raises(InvalidStage):
        compile_template(template, FUNCTIONS)(POD)


def stage(name: str, *expressions: Json, kind: str = "Pod", **spec: Any) -> Json:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": list(expressions)},
            **spec,
        },
    }


def when(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def test_selectors_delays_and_weights_are_kwoks() -> None:
    delay = {"durationMilliseconds": 1000, "durationFrom": {"expressionFrom": '.metadata.annotations["a.b/c"]'}}
    read = read_stage(stage("s", when(".metadata.name", "In", "p"), delay=delay, weight=1), FUNCTIONS)
    other = read_stage(stage("t", when(".metadata.name", "Exists"), weight=0), FUNCTIONS)
    never = read_stage(stage("n", when(".metadata.deletionTimestamp", "Exists"), weight=9), FUNCTIONS)
    assert read is not None
    assert other is not None
    assert never is not None
    assert read.wait_for(POD, 0.0, random.Random(1)) == 5.0
    assert read.wait_for({"metadata": {}}, 0.0, random.Random(1)) == 1.0
    assert choose([read, other, never], POD, random.Random(1)) is read
    assert choose([never], POD, random.Random(1)) is None


def test_stages_about_other_kinds_are_not_ours() -> None:
    assert read_stage(stage("s", kind="ConfigMap"), FUNCTIONS) is None


READY = """
{{ $now := Now }}
conditions:
{{ range $index, $type := list "Initialized" "Ready" "ContainersReady" }}
- {type: {{ $type | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 7
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName false "" .metadata.name .metadata.namespace | Quote }}
phase: Running
"""


async def test_stages_drive_pods_where_there_are_any() -> None:
    async with whole_server(simulated_nodes=1, simulation_delay="10ms") as api:
        client = api.client(in_process=True)
        pods = client.resource("v1", "pods", namespace="default")
        await until(client.resource("v1", "nodes"), "node-1", lambda node: (node.get("status") or {}).get("addresses"))
        stages = client.resource("kwok.x-k8s.io/v1alpha1", "stages")
        event = {"type": "Normal", "reason": "Staged", "message": "on the stage"}
        pending, living = when(".status.phase", "In", "Pending"), when(".metadata.deletionTimestamp", "DoesNotExist")
        for each in (
            stage("ready", pending, living, next={"statusTemplate": READY, "event": event}),
            stage("delete", when(".metadata.deletionTimestamp", "Exists"), next={"delete": True}),
            stage("strange", pending, next={"statusTemplate": "{{ genCA }}"}),
        ):
            await stages.create(each)
        events = client.resource("v1", "events", namespace="default")
        await until_all(events, lambda every: any(each["reason"] == "InvalidStage" for each in every))
        spec = {"nodeName": "node-1", "containers": [{"name": "app", "image": "nginx"}]}
        await pods.create({"metadata": {"name": "a"}, "spec": spec})
        ready = await until(pods, "a", lambda pod: pod["status"]["phase"] == "Running")
        assert ready["status"]["containerStatuses"][0]["restartCount"] == 7
        assert ready["status"]["podIP"].startswith("10.128.0.")
        await until_all(events, lambda every: any(each["reason"] == "Staged" for each in every))
        await pods.delete("a")
        await until_gone(pods, "a")
        for name in ("ready", "delete"):
            await stages.delete(name)
        await pods.create({"metadata": {"name": "b"}, "spec": spec})
        usual = await until(pods, "b", lambda pod: pod["status"]["phase"] == "Running")
        assert usual["status"]["containerStatuses"][0]["restartCount"] == 0
