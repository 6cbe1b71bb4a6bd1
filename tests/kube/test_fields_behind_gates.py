"""Fields that feature gates turn on and off: kept and checked where the gate is on, dropped where it is off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any

import pytest
import pytest_asyncio
from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API, Answer

pytestmark = pytest.mark.asyncio(loop_scope="module")

_PODS = "/api/v1/namespaces/default/pods"
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
_SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_RESOURCE_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
_KINDS = {
    _PODS: ("v1", "Pod"),
    _CLAIMS: ("v1", "PersistentVolumeClaim"),
    _SETS: ("apps/v1", "StatefulSet"),
    _SCALERS: ("autoscaling/v2", "HorizontalPodAutoscaler"),
    _DRIVERS: ("storage.k8s.io/v1", "CSIDriver"),
    _SLICES: ("resource.k8s.io/v1", "ResourceSlice"),
    _RESOURCE_CLAIMS: ("resource.k8s.io/v1", "ResourceClaim"),
}
_ON = (
    "ClusterTrustBundle ClusterTrustBundleProjection ContainerStopSignals CrossNamespaceVolumeDataSource "
    "DRANodeAllocatableResources GenericWorkload HPAScaleToZero MaxUnavailableStatefulSet PodCertificateRequest "
    "SELinuxMount TaintTolerationComparisonOperators VolumeLimitScaling"
)
_OFF = (
    "ComponentFlagz ComponentStatusz ContainerRestartRules DRADeviceBindingConditions DRADeviceTaints "
    "HPAConfigurableTolerance HostnameOverride RelaxedServiceNameValidation RestartAllContainersOnContainerExits "
    "StrictIPCIDRValidation"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def changed() -> AsyncIterator[API]:
    """A server where gates are the other way round."""
    gates = [f"{name}=true" for name in _ON.split()] + [f"{name}=false" for name in _OFF.split()]
    async with whole_server(feature_gates=",".join(gates)) as api:
        yield api


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def default() -> AsyncIterator[API]:
    async with whole_server() as api:
        yield api


def _pod(**fields: Any) -> Json:
    container = {"name": "c", "image": "i", **fields.pop("container", {})}
    return {"containers": [container], "os": {"name": "linux"}, **fields}


def _projected(**source: Json) -> Json:
    return _pod(volumes=[{"name": "v", "projected": {"sources": [source]}}])


def _slice(**device: Any) -> Json:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {"driver": "d.example.com", "pool": pool, "nodeName": "n", "devices": [{"name": "a", **device}]}


async def _create(api: API, path: str, spec: Json, name: str = "one") -> Answer:
    version, kind = _KINDS[path]
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": deepcopy(spec)}
    return await api.request("POST", f"{path}?dryRun=All", obj)


def _at(obj: Json, path: str) -> Any:
    found: Any = obj
    for step in path.split("."):
        found = found[int(step)] if step.isdigit() else (found or {}).get(step)
    return found


_BUNDLE = {"name": "bundle", "path": "file"}
_CERTIFICATE = {"signerName": "example.com/s", "keyType": "ED25519", "credentialBundlePath": "file"}
_SET = {
    "serviceName": "x",
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
}
_CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "x", "namespace": "other"},
}
_SCALER = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
    "maxReplicas": 3,
    "behavior": {"scaleUp": {"tolerance": "10m"}},
}
_TOLERANT = [{"key": "a", "operator": "Exists"}]
_REQUEST = {"name": "r", "exactly": {"deviceClassName": "c", "tolerations": _TOLERANT}}

_FIRST = "spec.containers.0"
_TURNED_ON = [
    (_PODS, _projected(clusterTrustBundle=_BUNDLE), "spec.volumes.0.projected.sources.0.clusterTrustBundle.name"),
    (_PODS, _projected(podCertificate=_CERTIFICATE), "spec.volumes.0.projected.sources.0.podCertificate.keyType"),
    (_PODS, _pod(container={"lifecycle": {"stopSignal": "SIGHUP"}}), f"{_FIRST}.lifecycle.stopSignal"),
    (_PODS, _pod(schedulingGroup={"podGroupName": "g"}), "spec.schedulingGroup.podGroupName"),
    (_CLAIMS, _CLAIM, "spec.dataSourceRef.namespace"),
    (_SETS, _SET, "spec.updateStrategy.rollingUpdate.maxUnavailable"),
    (_DRIVERS, {"preventPodSchedulingIfMissing": True}, "spec.preventPodSchedulingIfMissing"),
    (
        _SLICES,
        _slice(nodeAllocatableResourceMappings={"cpu": {}}),
        "spec.devices.0.nodeAllocatableResourceMappings.cpu.allocationMultiplier",
    ),
]
_TURNED_OFF = [
    (_PODS, _pod(hostnameOverride="x"), "spec.hostnameOverride"),
    (_PODS, _pod(restartPolicy="Never", container={"restartPolicy": "OnFailure"}), f"{_FIRST}.restartPolicy"),
    (_SCALERS, _SCALER, "spec.behavior.scaleUp.tolerance"),
    (_SLICES, _slice(taints=[{"key": "a", "effect": "NoSchedule"}]), "spec.devices.0.taints"),
    (_SLICES, _slice(bindsToNode=True), "spec.devices.0.bindsToNode"),
    (_RESOURCE_CLAIMS, {"devices": {"requests": [_REQUEST]}}, "spec.devices.requests.0.exactly.tolerations"),
]


async def test_a_field_of_a_feature_is_kept_where_it_is_on_and_dropped_where_it_is_off(
    changed: API, default: API
) -> None:
    for kept, dropped, cases in ((changed, default, _TURNED_ON), (default, changed, _TURNED_OFF)):
        for path, spec, field in cases:
            created = await _create(kept, path, spec)
            assert created.status == 201, created.body
            assert _at(created.json, field) is not None, field
            created = await _create(dropped, path, spec)
            assert created.status == 201, created.body
            assert _at(created.json, field.rpartition(".")[0] if "projected" in field else field) is None, field


@pytest.mark.parametrize(
    ("path", "spec", "refusal"),
    [
        (
            _PODS,
            _pod(tolerations=[{"key": "a", "operator": "Lt", "value": "5"}]),
            'spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"',
        ),
        (
            _PODS,
            _pod(securityContext={"seLinuxChangePolicy": "MountOption"}),
            'spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"',
        ),
        (
            _SCALERS,
            _SCALER
            | {
                "minReplicas": 0,
                "metrics": [
                    {
                        "type": "External",
                        "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}},
                    }
                ],
            },
            "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
        ),
    ],
)
async def test_a_value_is_refused_only_where_its_feature_is_off(
    changed: API, default: API, path: str, spec: Json, refusal: str
) -> None:
    refused = await _create(default, path, spec)
    assert (refused.status, refused.json["message"].partition("is invalid: ")[2]) == (422, refusal)
    assert (await _create(changed, path, spec)).status == 201


async def test_projected_certificates_are_checked(changed: API) -> None:
    at = "spec.volumes[0].projected.sources[0]"
    answer = await _create(changed, _PODS, _projected(clusterTrustBundle={"name": "a:b", "path": ""}))
    assert [f"{cause['field']}: {cause['message']}" for cause in answer.json["details"]["causes"]] == [
        f"{at}.clusterTrustBundle.path: Required value",
    ]
    answer = await _create(changed, _PODS, _projected(podCertificate=_CERTIFICATE | {"maxExpirationSeconds": 1}))
    assert [f"{cause['field']}: {cause['message']}" for cause in answer.json["details"]["causes"]] == [
        f"{at}.podCertificate.maxExpirationSeconds: Invalid value: 1: if provided, maxExpirationSeconds must be >= 3600"
    ]


async def test_the_metrics_show_every_gate(changed: API) -> None:
    metrics = (await changed.request("GET", "/metrics")).body.decode()
    assert 'kubernetes_feature_enabled{name="APIServerTracing",stage=""}' in metrics
    assert metrics.count("\nkubernetes_feature_enabled{") == 242


async def test_addresses_with_leading_zeros_are_fine_where_validation_is_not_strict(changed: API, default: API) -> None:
    spec = {"ports": [{"port": 80}], "externalIPs": ["192.000.002.001"]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lenient"}, "spec": spec}
    path = "/api/v1/namespaces/default/services"
    refused = await default.request("POST", path, service)
    assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (422, "spec.externalIPs[0]")
    created = await changed.request("POST", path, service)
    assert (created.status, created.json["spec"]["externalIPs"]) == (201, ["192.000.002.001"])


async def test_a_service_named_by_a_digit_first_needs_the_relaxed_rule(changed: API, default: API) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "1st"}, "spec": {"ports": [{"port": 80}]}}
    backend = {"service": {"name": "1st", "port": {"number": 80}}}
    ingress = {"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}}
    ingress |= {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}
    services, ingresses = (f"/{api}/namespaces/default/" for api in ("api/v1", "apis/networking.k8s.io/v1"))
    for path, obj, where in (
        (f"{services}services", service, "metadata.name"),
        (f"{ingresses}ingresses", ingress, "spec.defaultBackend.service.name"),
    ):
        assert (await default.request("POST", path, obj)).status == 201
        refused = await changed.request("POST", path, obj)
        assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (422, where)
        assert "a DNS-1035 label must consist of" in refused.json["message"]


async def test_pages_about_the_server_are_where_their_gates_are_on(changed: API, default: API) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:monitoring"
    for page in ("/flagz", "/statusz"):
        assert (await default.request("GET", page, accept="text/plain")).status == 200
        assert (await changed.request("GET", page, accept="text/plain")).status == 404
        assert page in (await default.request("GET", role)).json["rules"][0]["nonResourceURLs"]
