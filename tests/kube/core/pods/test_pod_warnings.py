"""What the authors of pods and of templates are warned of."""

from __future__ import annotations

from typing import Any

import pytest
from sample_pods import container, pod, stored

from pilothouse.kube.core.pods.warnings.pod import pod_template_warnings, pod_warnings
from pilothouse.machinery.field import root
from pilothouse.machinery.objects import Json


def warned(*containers: Json, **spec: Any) -> list[str]:
    return list(pod_warnings(stored(pod(*containers, **spec))))


def test_ordinary_pod_has_no_warnings() -> None:
    assert warned(container(ports=[{"containerPort": 80, "name": "http"}]), nodeSelector={"a": "b"}) == []


def test_name_unfit_for_a_host_name_yields_a_warning() -> None:
    (warning,) = warned(meta={"name": "a.b"})
    assert warning == (
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    )


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        (
            {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
        ),
        (
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "beta.kubernetes.io/arch", "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            [
                "spec.topologySpreadConstraints[0].topologyKey: beta.kubernetes.io/arch is deprecated since v1.14; use "
                '"kubernetes.io/arch" instead',
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            ],
        ),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 1,
                                "preference": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["-"]}]},
                            }
                        ]
                    }
                }
            },
            [
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference."
                "matchExpressions[0].values[0]: - is invalid, a valid label must be an empty string or consist of "
                "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ],
        ),
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}}},
            [
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: "
                "a null labelSelector results in matching no pod"
            ],
        ),
        (
            {
                "volumes": [
                    {"name": "v", "gitRepo": {"repository": "r"}},
                    {"name": "w", "rbd": {"monitors": [], "image": ""}},
                ]
            },
            [
                "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                "spec.volumes[1].rbd: deprecated in v1.28, non-functional in v1.31+",
            ],
        ),
        (
            {
                "volumes": [
                    {
                        "name": "v",
                        "ephemeral": {
                            "volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "500m"}}}}
                        },
                    }
                ]
            },
            [
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "
                '"500m" is invalid, must be an integer'
            ],
        ),
        ({"hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}]}, ['spec.hostAliases[1].ip: duplicate ip "1.1.1.1"']),
        (
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]},
            [
                'spec.imagePullSecrets[1].name: duplicate name "a"',
                'spec.imagePullSecrets[2].name: invalid empty name ""',
            ],
        ),
        (
            {"overhead": {"memory": "500m"}},
            ['spec.overhead[memory]: fractional byte value "500m" is invalid, must be an integer'],
        ),
        (
            {"dnsConfig": {"nameservers": ["fd00:0::1"]}},
            [
                'spec.dnsConfig.nameservers[0]: IPv6 address "fd00:0::1" should be in RFC 5952 '
                'canonical format ("fd00::1")'
            ],
        ),
    ],
)
def test_spec_warnings(spec: Json, warnings: list[str]) -> None:
    assert warned(**spec) == warnings


@pytest.mark.parametrize(
    ("part", "warnings"),
    [
        (
            {"resources": {"limits": {"memory": "500m"}, "requests": {"memory": "1"}}},
            ['resources.limits[memory]: fractional byte value "500m" is invalid, must be an integer'],
        ),
        (
            {"env": [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}]},
            ['env[1]: hides previous definition of "A", which may be dropped when using apply'],
        ),
        ({"env": [{"name": "A", "value": "x"}, {"name": "A", "value": "$(A)y"}]}, []),
        (
            {"env": [{"name": "A", "value": "x"}, {"name": "A", "value": "$(A)"}]},
            ['env[1]: hides previous definition of "A", which may be dropped when using apply'],
        ),
        (
            {"ports": [{"containerPort": 1, "hostIP": "1.1.1.1"}]},
            ["ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:1 Protocol:TCP HostIP:1.1.1.1}"],
        ),
        (
            {"ports": [{"containerPort": 1}, {"containerPort": 1}]},
            ["ports[1]: duplicate port definition with spec.containers[0].ports[0]"],
        ),
        (
            {"ports": [{"containerPort": 1}, {"containerPort": 1, "hostPort": 5}]},
            ["ports[1]: overlapping port definition with spec.containers[0].ports[0]"],
        ),
        (
            {"ports": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 1, "hostPort": 5, "hostIP": "1.1.1.1"}]},
            ["ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[0]"],
        ),
        ({"ports": [{"containerPort": 1, "protocol": "UDP"}, {"containerPort": 1}]}, []),
    ],
)
def test_container_warnings(part: Json, warnings: list[str]) -> None:
    assert [each.removeprefix("spec.containers[0].") for each in warned(container(**part))] == warnings


def test_port_name_refers_to_the_first_port() -> None:
    parts = [container(name=name, ports=[{"containerPort": n, "name": "p"}]) for n, name in ((1, "a"), (2, "b"))]
    first = "spec.containers[0].ports[0]"
    assert warned(*parts) == [
        f'spec.containers[1].ports[0]: duplicate port name "p" with {first}, services and probes that select ports by '
        f"name will use {first}"
    ]


def files(*paths: str) -> Json:
    return {"items": [{"key": "k", "path": path} for path in paths]}


@pytest.mark.parametrize(
    ("source", "warnings"),
    [
        ({"configMap": {"name": "m", **files("a", "b")}}, []),
        (
            {"configMap": {"name": "m", **files("a", "a/b")}},
            ['volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a"'],
        ),
        (
            {"secret": {"secretName": "s", **files("a/", "a")}},
            ['volume "v" (Secret "s"): overlapping paths: "a" with "a"'],
        ),
        ({"configMap": {"name": "m", **files("ab", "a")}}, []),
        (
            {
                "projected": {
                    "sources": [
                        {"secret": {"name": "s", **files("t")}},
                        {"serviceAccountToken": {"path": "t"}},
                        {},
                    ]
                }
            },
            [
                'volume "v" (Projected) has no sources provided',
                'volume "v" (Projected): overlapping paths: "t" (ServiceAccountToken) with "t" (Secret "s")',
            ],
        ),
    ],
)
def test_overlapping_files_yield_warnings(source: Json, warnings: list[str]) -> None:
    assert warned(volumes=[{"name": "v", **source}]) == warnings


def test_deprecated_annotations_yield_warnings() -> None:
    annotations = {
        "scheduler.alpha.kubernetes.io/critical-pod": "",
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        "container.seccomp.security.alpha.kubernetes.io/c": "unconfined",
    }
    assert warned(meta={"annotations": annotations}) == [
        "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "
        '"priorityClassName" field instead',
        "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "
        '"seccompProfile" field instead',
        "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: non-functional in v1.27+; use the "
        '"seccompProfile" field instead',
    ]


def test_templates_are_warned_at_their_own_path_and_keep_their_annotations() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    template = pod(meta={"annotations": {key: "unconfined"}}, terminationGracePeriodSeconds=-1)
    assert list(pod_template_warnings(template, root("spec", "template"))) == [
        f'spec.template.metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead',
        "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be "
        "treated as 1",
    ]
