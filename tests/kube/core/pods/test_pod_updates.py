"""What may change in a pod that exists."""

from __future__ import annotations

from typing import Any

import pytest
from sample_pods import change_errors, changed, container, pod, stored, update_errors

from pilothouse.kube.core.pods.strategy import (
    PodEphemeralContainersStrategy,
    PodResizeStrategy,
    PodStrategy,
)
from pilothouse.machinery.objects import Json

ONLY = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"activeDeadlineSeconds": 5}),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 4}),
        ({}, {"tolerations": [{"operator": "Exists"}]}),
        (
            {"tolerations": [{"key": "k", "effect": "NoExecute", "tolerationSeconds": 1}]},
            {"tolerations": [{"key": "k", "effect": "NoExecute", "tolerationSeconds": 2}]},
        ),
        ({"schedulingGates": [{"name": "a"}, {"name": "b"}]}, {"schedulingGates": [{"name": "b"}]}),
        ({"schedulingGates": [{"name": "a"}]}, {"nodeSelector": {"a": "b"}}),
    ],
)
def test_mutable_fields_of_a_pod_may_change(old: Json, new: Json) -> None:
    assert update_errors(pod(**new), pod(**old)) == []


def test_images_may_change() -> None:
    before = pod(container(), initContainers=[container(name="i")])
    assert update_errors(pod(container(image="j"), initContainers=[container(name="i", image="j")]), before) == []
    why = 'spec.containers[0].image: Invalid value: " i:1": must not have leading or trailing whitespace'
    assert update_errors(pod(container(image=" i:1")), pod(container(image="i:1"))) == [why, why]


def test_equal_quantities_in_other_notation_are_unchanged() -> None:
    before = pod(container(resources={"limits": {"memory": "1Gi"}}))
    assert update_errors(pod(container(resources={"limits": {"memory": "1073741824"}})), before) == []


@pytest.mark.parametrize(
    ("old", "new", "errors"),
    [
        (
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 6},
            ["spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"],
        ),
        (
            {"activeDeadlineSeconds": 5},
            {},
            ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"],
        ),
        (
            {"tolerations": [{"operator": "Exists"}]},
            {},
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
        ),
        (
            {},
            {"schedulingGates": [{"name": "a"}]},
            ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'"],
        ),
        (
            {"schedulingGates": [{"name": "a"}], "nodeSelector": {"a": "b"}},
            {"nodeSelector": {"c": "d"}},
            [
                'spec.nodeSelector: Invalid value: {"c":"d"}: only additions to spec.nodeSelector '
                "are allowed (no mutations "
                "or deletions)"
            ],
        ),
    ],
)
def test_some_changes_have_specific_errors(old: Json, new: Json, errors: list[str]) -> None:
    assert update_errors(pod(**new), pod(**old)) == errors


def test_containers_cannot_be_added_or_removed() -> None:
    assert update_errors(pod(container(), container(name="d")), pod()) == [
        "spec.containers: Forbidden: pod updates may not add or remove containers"
    ]


def test_other_changes_are_reported_as_a_diff() -> None:
    new = pod(container(command=["x"]), hostname="h")
    assert update_errors(new, pod()) == [
        ONLY + "@@ -5,7 +5,9 @@\n"
        "   {\n"
        '    "Name": "c",\n'
        '    "Image": "i",\n'
        '-   "Command": null,\n'
        '+   "Command": [\n'
        '+    "x"\n'
        "+   ],\n"
        '    "Args": null,\n'
        '    "WorkingDir": "",\n'
        '    "Ports": null,\n'
        "@@ -64,7 +66,7 @@\n"
        '   "SELinuxChangePolicy": null\n'
        "  },\n"
        '  "ImagePullSecrets": null,\n'
        '- "Hostname": "",\n'
        '+ "Hostname": "h",\n'
        '  "Subdomain": "",\n'
        '  "SetHostnameAsFQDN": null,\n'
        '  "Affinity": null,\n'
    ]


def test_diff_omits_allowed_changes() -> None:
    (error,) = update_errors(pod(container(image="j"), hostNetwork=True), pod())
    assert '"Image": "j"' not in error
    assert '-  "HostNetwork": false,\n+  "HostNetwork": true,\n' in error


def terms(*expressions: Json) -> Json:
    required = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


A, B = ({"key": key, "operator": "Exists"} for key in "ab")


@pytest.mark.parametrize(
    ("old", "new", "errors"),
    [
        (None, terms(A), []),
        (terms(A), terms(A, B), []),
        (
            terms(A),
            terms(B),
            [
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: "
                'Invalid value: {"MatchExpressions":[{"Key":"b","Operator":"Exists","Values":null}],"MatchFields":null}'
                ": only additions are allowed (no mutations or deletions)"
            ],
        ),
        (
            terms(A),
            None,
            [
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Invalid "
                "value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed"
            ],
        ),
    ],
)
def test_gated_pod_may_narrow_node_selection(old: Json | None, new: Json | None, errors: list[str]) -> None:
    gates: Json = {"schedulingGates": [{"name": "a"}]}
    before = pod(**gates | ({"affinity": old} if old else {}))
    assert update_errors(pod(**gates | ({"affinity": new} if new else {})), before) == errors


@pytest.mark.parametrize(
    ("old", "new", "errors"),
    [
        ({}, {"a": "b"}, []),
        (
            {"kubernetes.io/config.mirror": "m"},
            {},
            ["[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod annotation"],
        ),
        (
            {},
            {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"},
            ["[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not add AppArmor annotations"],
        ),
    ],
)
def test_some_annotations_are_immutable(old: Json, new: Json, errors: list[str]) -> None:
    found = update_errors(pod(meta={"annotations": new}, nodeName="n"), pod(meta={"annotations": old}, nodeName="n"))
    assert [error.removeprefix("metadata.annotations") for error in found] == errors


def test_stored_faults_do_not_block_updates() -> None:
    wrong: Json = {
        "affinity": terms({"key": "a", "operator": "In", "values": ["a b"]}),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "z",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"a": "b c"}},
            }
        ],
        "securityContext": {"sysctls": [{"name": "net.a", "value": "1"}], "seLinuxChangePolicy": "MountOption"},
        "hostNetwork": True,
        "tolerations": [{"key": "k", "operator": "Gt", "value": "5"}],
    }
    part = container(resources={"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}})
    meta = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "x"}}
    new = pod(part | {"image": "j"}, meta=meta, **wrong)
    assert update_errors(new, pod(part, meta=meta, **wrong)) == []


def test_generation_counts_spec_changes() -> None:
    strategy, before = PodStrategy(), stored(pod())
    same = changed(strategy, stored(pod(meta={"labels": {"a": "b"}})), before)
    other = changed(strategy, stored(pod(container(image="j"))), before)
    assert (same["metadata"]["generation"], other["metadata"]["generation"]) == (1, 2)


def test_the_status_is_not_changed_with_the_spec() -> None:
    before = stored(pod(status={"phase": "Running"}))
    assert changed(PodStrategy(), stored(pod(status={"phase": "Failed"})), before)["status"] == {"phase": "Running"}


def debugged(*containers: Json, **fields: Any) -> Json:
    return stored(pod(ephemeralContainers=list(containers), **fields))


DEBUG = {"name": "e", "image": "i"}


def test_ephemeral_containers_are_added_and_nothing_else_is() -> None:
    strategy, before = PodEphemeralContainersStrategy(), debugged(meta={"labels": {"a": "b"}})
    after = changed(strategy, debugged(DEBUG, hostname="h", meta={"labels": {}}), before)
    assert after["spec"]["ephemeralContainers"][0]["name"] == "e"
    assert (after["spec"].get("hostname"), after["metadata"]["labels"]) == (None, {"a": "b"})
    assert after["metadata"]["generation"] == 2
    assert change_errors(strategy, debugged(DEBUG), before) == []


def test_ephemeral_containers_are_neither_changed_nor_removed() -> None:
    strategy, before = PodEphemeralContainersStrategy(), debugged(DEBUG)
    assert change_errors(strategy, debugged(), before) == [
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be removed\n'
    ]
    (error,) = change_errors(strategy, debugged(DEBUG | {"image": "j"}), before)
    assert error.startswith(
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be changed\n'
    )
    assert '- "Image": "i",\n+ "Image": "j",\n' in error


@pytest.mark.parametrize(
    ("strategy", "error"),
    [
        (PodEphemeralContainersStrategy(), "[]: Forbidden: static pods do not support ephemeral containers"),
        (PodResizeStrategy(), "[]: Forbidden: static pods cannot be resized"),
    ],
)
def test_static_pods_are_immutable(strategy: PodStrategy, error: str) -> None:
    static = stored(pod(meta={"annotations": {"kubernetes.io/config.mirror": "m"}}, nodeName="n"))
    assert change_errors(strategy, stored(pod(meta=static["metadata"], nodeName="n")), static) == [error]


def sized(*, part: Json | None = None, status: Json | None = None, **amounts: Json) -> Json:
    return stored(pod(container(resources=amounts, **(part or {})), status=status))


SMALL = {"requests": {"cpu": "1", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("old", "new", "errors"),
    [
        (SMALL, {"requests": {"cpu": "2", "memory": "1Gi"}}, []),
        (SMALL, SMALL | {"limits": {"cpu": "3"}}, []),
        (
            SMALL,
            {"requests": {"cpu": "1"}},
            ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
        ),
        (
            SMALL,
            {},
            [
                'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
                "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            ],
        ),
        (
            SMALL,
            {"requests": SMALL["requests"] | {"ephemeral-storage": "1"}},
            ["spec: Forbidden: only cpu and memory resources are mutable"],
        ),
    ],
)
def test_cpu_and_memory_can_be_resized(old: Json, new: Json, errors: list[str]) -> None:
    status = {"qosClass": "Burstable"}
    assert change_errors(PodResizeStrategy(), sized(status=status, **new), sized(status=status, **old)) == errors


def test_a_resize_leaves_everything_else_alone() -> None:
    before = sized(**SMALL)
    after = changed(PodResizeStrategy(), sized(part={"image": "j"}, requests={"cpu": "2", "memory": "1Gi"}), before)
    assert after["spec"]["containers"][0]["image"] == "i"
    assert after["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (
            pod(container(), container(name="d")),
            "spec.containers: Forbidden: containers may not be added or removed on resize",
        ),
        (
            pod(container(name="d")),
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
        ),
    ],
)
def test_a_resize_keeps_the_containers(new: Json, error: str) -> None:
    assert change_errors(PodResizeStrategy(), stored(new), stored(pod())) == [error]


def test_only_kubelets_that_report_resources_can_resize() -> None:
    status = {
        "qosClass": "Burstable",
        "containerStatuses": [{"name": "c", "state": {"running": {}}, "restartCount": 0, "ready": True}],
    }
    new = sized(status=status, requests={"cpu": "2", "memory": "1Gi"})
    assert change_errors(PodResizeStrategy(), new, sized(status=status, **SMALL)) == [
        "spec: Forbidden: Pod running on node without support for resize"
    ]


def test_resources_of_the_whole_pod_can_be_resized_but_not_removed() -> None:
    def whole(**resources: Json) -> Json:
        return stored(pod(resources=resources, status={"qosClass": "Burstable"}))

    before = whole(requests={"cpu": "1"})
    strategy = PodResizeStrategy()
    assert change_errors(strategy, whole(requests={"cpu": "2"}), before) == []
    assert change_errors(strategy, stored(pod(status={"qosClass": "Burstable"})), before) == [
        'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
        "spec.resources: Forbidden: pod-level resources cannot be removed",
    ]
