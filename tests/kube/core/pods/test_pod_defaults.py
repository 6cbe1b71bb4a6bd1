"""What a pod becomes when its author leaves things out."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded
from sample_pods import container, pod, with_volume

from pilothouse.kube.core.pods.defaults.containers import image_tag
from pilothouse.kube.core.pods.defaults.pod import default_pod_template
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.machinery.objects import Json


def spec_of(obj: Json) -> Json:
    spec = decoded(PODS, obj)["spec"]
    assert isinstance(spec, dict)
    return spec


def test_minimal_pod_gets_all_defaults() -> None:
    assert spec_of(pod()) == {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "resources": {},
                "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "enableServiceLinks": True,
    }


def test_pod_defaults_are_idempotent() -> None:
    once = decoded(
        PODS,
        pod(
            container(livenessProbe={"httpGet": {"port": 1}}, resources={"limits": {"cpu": "100n"}}),
            hostNetwork=True,
            serviceAccount="a",
            volumes=[{"name": "a"}, {"name": "b", "projected": {"sources": [{"serviceAccountToken": {}}]}}],
        ),
    )
    assert decoded(PODS, once) == once


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("nginx", "latest"),
        ("nginx:1.25", "1.25"),
        ("nginx:latest", "latest"),
        ("registry.example.com:5000/team/app", "latest"),
        ("registry.example.com:5000/team/app:v1", "v1"),
        ("localhost/app", "latest"),
        ("[::1]:5000/app:x", "x"),
        (f"nginx@sha256:{'a' * 64}", ""),
        (f"nginx:1@sha256:{'a' * 64}", "1"),
        (f"nginx@sha256:{'A' * 64}", ""),
        (f"nginx@md5:{'a' * 32}", ""),
        ("a" * 64, ""),
        ("g" * 64, "latest"),
        ("Nginx", ""),
        ("a/B", ""),
        ("a//b", ""),
        ("nginx:", ""),
        (" nginx", ""),
        ("", ""),
        ("a" * 300, ""),
    ],
)
def test_image_tag(image: str, tag: str) -> None:
    assert image_tag(image) == tag


@pytest.mark.parametrize(("image", "policy"), [("a", "Always"), ("a:1", "IfNotPresent"), ("A B", "IfNotPresent")])
def test_only_the_latest_image_is_always_pulled(image: str, policy: str) -> None:
    assert spec_of(pod(container(image=image)))["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (
            {"livenessProbe": {"httpGet": {"port": 80}}},
            {
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
        ),
        (
            {"livenessProbe": {"grpc": {"port": 80}, "periodSeconds": 5}},
            {
                "grpc": {"port": 80, "service": ""},
                "timeoutSeconds": 1,
                "periodSeconds": 5,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
        ),
    ],
)
def test_probe_defaults(sent: Json, stored: Json) -> None:
    assert spec_of(pod(container(**sent)))["containers"][0]["livenessProbe"] == stored


def test_port_env_and_hook_defaults() -> None:
    sent = container(
        ports=[{"containerPort": 80}],
        env=[
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}},
        ],
        lifecycle={"preStop": {"httpGet": {"port": 1}}},
    )
    made = spec_of(pod(sent))["containers"][0]
    assert made["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert made["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert made["env"][1]["valueFrom"]["fileKeyRef"]["optional"] is False
    assert made["lifecycle"]["preStop"]["httpGet"] == {"port": 1, "path": "/", "scheme": "HTTP"}


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}),
        (
            {"limits": {"cpu": "1", "memory": "2"}, "requests": {"cpu": "500m"}},
            {"limits": {"cpu": "1", "memory": "2"}, "requests": {"cpu": "500m", "memory": "2"}},
        ),
        ({"requests": {"cpu": "1u"}}, {"requests": {"cpu": "1m"}}),
        ({"requests": {"cpu": "-1500u"}}, {"requests": {"cpu": "-2m"}}),
    ],
)
def test_requests_default_to_limits_rounded_to_thousandths(sent: Json, stored: Json) -> None:
    assert spec_of(pod(container(resources=sent)))["containers"][0]["resources"] == stored


@pytest.mark.parametrize(
    ("containers", "sent", "stored"),
    [
        ([{"cpu": "1"}], {"limits": {"cpu": "3"}}, {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}),
        ([{}], {"limits": {"cpu": "3"}}, {"limits": {"cpu": "3"}, "requests": {"cpu": "3"}}),
        ([{"cpu": "1"}], {"requests": {"memory": "1"}}, {"requests": {"memory": "1"}}),
        (
            [{"cpu": "1"}, {"cpu": "500m"}],
            {"limits": {"memory": "3"}},
            {
                "limits": {"memory": "3"},
                "requests": {"cpu": "1500m", "memory": "3"},
            },
        ),
    ],
)
def test_pod_level_requests_default_to_container_requests(containers: list[Json], sent: Json, stored: Json) -> None:
    parts = [container(name=f"c{i}", resources={"requests": each}) for i, each in enumerate(containers)]
    assert spec_of(pod(*parts, resources=sent))["resources"] == stored


def test_huge_pages_of_containers_become_a_limit_of_their_pod() -> None:
    part = container(resources={"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"}})
    made = spec_of(pod(part, resources={"requests": {"cpu": "1"}}))["resources"]
    assert made == {
        "limits": {"hugepages-2Mi": "4Mi"},
        "requests": {"cpu": "1", "hugepages-2Mi": "4Mi", "memory": "1Gi"},
    }


@pytest.mark.parametrize(
    ("source", "stored"),
    [
        ({}, {"emptyDir": {}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"configMap": {"name": "s"}}, {"configMap": {"name": "s", "defaultMode": 420}}),
        (
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {
                "downwardAPI": {
                    "items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}],
                    "defaultMode": 420,
                }
            },
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 420,
                }
            },
        ),
        (
            {"iscsi": {"targetPortal": "t", "iqn": "q", "lun": 0}},
            {"iscsi": {"targetPortal": "t", "iqn": "q", "lun": 0, "iscsiInterface": "default"}},
        ),
        (
            {"rbd": {"monitors": ["m"], "image": "i"}},
            {
                "rbd": {
                    "monitors": ["m"],
                    "image": "i",
                    "pool": "rbd",
                    "user": "admin",
                    "keyring": "/etc/ceph/keyring",
                }
            },
        ),
        (
            {"azureDisk": {"diskName": "d", "diskURI": "u"}},
            {
                "azureDisk": {
                    "diskName": "d",
                    "diskURI": "u",
                    "cachingMode": "ReadWrite",
                    "fsType": "ext4",
                    "readOnly": False,
                    "kind": "Shared",
                }
            },
        ),
        ({"image": {"reference": "a:1"}}, {"image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}}),
    ],
)
def test_volume_defaults(source: Json, stored: Json) -> None:
    assert spec_of(with_volume(source))["volumes"] == [{"name": "v", **stored}]


def test_the_claim_of_an_ephemeral_volume_has_a_file_system() -> None:
    made = spec_of(with_volume({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}))
    assert made["volumes"][0]["ephemeral"]["volumeClaimTemplate"]["spec"]["volumeMode"] == "Filesystem"


def test_ports_on_the_hosts_network_are_the_hosts_ports() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]
    made = spec_of(pod(container(ports=ports), hostNetwork=True))["containers"][0]["ports"]
    assert [port["hostPort"] for port in made] == [80, 8081]


@pytest.mark.parametrize(
    "sent", [{"serviceAccount": "a"}, {"serviceAccountName": "a"}, {"serviceAccount": "b", "serviceAccountName": "a"}]
)
def test_service_account_aliases_are_equal(sent: Json) -> None:
    made = spec_of(pod(**sent))
    assert (made["serviceAccount"], made["serviceAccountName"]) == ("a", "a")


def test_negative_grace_period_becomes_one_in_pods_only() -> None:
    assert spec_of(pod(terminationGracePeriodSeconds=-5))["terminationGracePeriodSeconds"] == 1
    template = {"spec": {"containers": [], "terminationGracePeriodSeconds": -5}}
    default_pod_template(template)
    assert template["spec"]["terminationGracePeriodSeconds"] == -5


def test_a_template_does_not_get_what_only_pods_have() -> None:
    template: Json = {"spec": {"containers": [container(resources={"limits": {"cpu": "1"}})]}}
    default_pod_template(template)
    assert template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert "enableServiceLinks" not in template["spec"]


def test_init_container_annotations_are_dropped() -> None:
    meta = {"annotations": {"pod.beta.kubernetes.io/init-containers": "[]", "a": "b"}}
    assert decoded(PODS, pod(meta=meta))["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize(
    ("sent", "address", "addresses"),
    [
        ({"podIP": "10.0.0.1"}, "10.0.0.1", ["10.0.0.1"]),
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}, "10.0.0.1", ["10.0.0.1", "fd00::1"]),
        ({"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.1"}]}, "10.0.0.2", ["10.0.0.2"]),
    ],
)
def test_the_address_of_a_pod_is_the_first_of_its_addresses(sent: Json, address: str, addresses: list[Any]) -> None:
    status = decoded(PODS, pod(status=sent))["status"]
    assert (status["podIP"], [each["ip"] for each in status["podIPs"]]) == (address, addresses)
