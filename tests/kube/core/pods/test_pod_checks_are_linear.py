"""A pod of up to 3 MB is checked in a time that grows with its size, not with the square of it, whatever is in it.

Work is counted in calls of functions, not in time, so that a busy machine changes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from pilothouse.kube.core.pods.defaults.pod import default_pod
from pilothouse.kube.core.pods.validation.pod import validate_new_pod
from pilothouse.kube.core.pods.warnings.pod import pod_warnings
from pilothouse.machinery.objects import Json

FEW, MANY = 40, 320


def pod(spec: Json, **meta: Any) -> Json:
    containers = {"containers": [{"name": "c", "image": "i"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", **meta},
        "spec": containers | spec,
    }


def container(**fields: Any) -> Json:
    return {"name": "c", "image": "i", **fields}


SHAPES: dict[str, Callable[[int], Json]] = {
    "containers with one port on many host ports": lambda n: pod(
        {"containers": [container(name=f"c{at}", ports=[{"containerPort": 80, "hostPort": at + 1}]) for at in range(n)]}
    ),
    "ports with one host port": lambda n: pod(
        {
            "containers": [
                container(
                    ports=[{"containerPort": 80, "hostPort": 1, "hostIP": f"10.0.0.{at % 250}"} for at in range(n)]
                )
            ]
        }
    ),
    "ports without a host port": lambda n: pod({"containers": [container(ports=[{"containerPort": 80}] * n)]}),
    "variables": lambda n: pod({"containers": [container(env=[{"name": f"e{at}", "value": "v"} for at in range(n)])]}),
    "claims": lambda n: pod(
        {
            "containers": [container(resources={"claims": [{"name": f"r{at}"} for at in range(n)]})],
            "resourceClaims": [{"name": f"r{at}", "resourceClaimName": "x"} for at in range(n)],
        }
    ),
    "claims that are not there": lambda n: pod(
        {
            "containers": [container(resources={"claims": [{"name": f"other{at}"} for at in range(n)]})],
            "resourceClaims": [{"name": f"r{at}", "resourceClaimName": "x"} for at in range(n)],
        }
    ),
    "requests of one claim": lambda n: pod(
        {
            "containers": [container(resources={"claims": [{"name": "r", "request": f"q{at}"} for at in range(n)]})],
            "resourceClaims": [{"name": "r", "resourceClaimName": "x"}],
        }
    ),
    "spread constraints": lambda n: pod(
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": f"k{at}", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
                for at in range(n)
            ]
        }
    ),
    "mounts and devices": lambda n: pod(
        {
            "containers": [
                container(
                    volumeMounts=[{"name": f"v{at}", "mountPath": f"/m{at}"} for at in range(n)],
                    volumeDevices=[{"name": f"d{at}", "devicePath": f"/d{at}"} for at in range(n)],
                )
            ],
            "volumes": [{"name": f"v{at}", "emptyDir": {}} for at in range(n)],
        }
    ),
    "files": lambda n: pod(
        {
            "volumes": [
                {"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": f"f{at}"} for at in range(n)]}}
            ]
        }
    ),
    "the same file": lambda n: pod(
        {"volumes": [{"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": "f"}] * n}}]}
    ),
    "AppArmor annotations": lambda n: pod(
        {"containers": [container(name=f"c{at}") for at in range(n)]},
        annotations={f"container.apparmor.security.beta.kubernetes.io/c{at}": "runtime/default" for at in range(n)},
    ),
    "tolerations": lambda n: pod({"tolerations": [{"key": f"k{at}", "operator": "Exists"} for at in range(n)]}),
    "host aliases": lambda n: pod({"hostAliases": [{"ip": "10.0.0.1", "hostnames": [f"h{at}"]} for at in range(n)]}),
    "init containers": lambda n: pod({"initContainers": [container(name=f"i{at}") for at in range(n)]}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_of_checking_a_pod_grows_with_its_size(shape: str) -> None:
    few, many = (_work(SHAPES[shape](number)) for number in (FEW, MANY))
    assert many < few * MANY / FEW * 2


def _work(pod: Json) -> int:
    """Lines that are run to default, validate and warn."""
    lines = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += 1
        return count

    default_pod(pod)
    before = sys.gettrace()
    sys.settrace(count)
    try:
        list(validate_new_pod(pod))
        list(pod_warnings(pod))
    finally:
        sys.settrace(before)
    return lines
