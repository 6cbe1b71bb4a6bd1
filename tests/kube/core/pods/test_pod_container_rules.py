"""What containers may say."""

from __future__ import annotations

from typing import Any

import pytest
from sample_pods import container, errors_of, pod

from pilothouse.kube.config import CAPABILITIES
from pilothouse.machinery.objects import Json

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def first(**fields: Any) -> list[str]:
    """What is wrong with a container that has these fields."""
    return [error.removeprefix("containers[0].") for error in errors_of(pod(container(**fields)))]


def test_a_plain_container_is_fine() -> None:
    assert errors_of(pod()) == []


def test_a_pod_has_a_container() -> None:
    assert errors_of({"metadata": {}, "spec": {}}) == ["containers: Required value"]


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        ({"name": ""}, ["name: Required value"]),
        ({"name": "A"}, [f'name: Invalid value: "A": {LABEL}']),
        ({"image": ""}, ["image: Required value"]),
        ({"image": " a"}, ['image: Invalid value: " a": must not have leading or trailing whitespace']),
        (
            {"terminationMessagePolicy": "X"},
            ['terminationMessagePolicy: Unsupported value: "X": supported values: "File", "FallbackToLogsOnError"'],
        ),
        (
            {"imagePullPolicy": "X"},
            ['imagePullPolicy: Unsupported value: "X": supported values: "Always", "IfNotPresent", "Never"'],
        ),
        (
            {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
            ['ports[1].name: Duplicate value: "a"'],
        ),
        ({"ports": [{}]}, ["ports[0].containerPort: Required value"]),
        (
            {"ports": [{"containerPort": 70000}]},
            ["ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
        ),
        (
            {"ports": [{"containerPort": 1, "protocol": "X"}]},
            ['ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"'],
        ),
        (
            {"ports": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]},
            ['ports[1].hostPort: Duplicate value: "TCP//5"'],
        ),
        (
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2},
            ['resizePolicy[1]: Duplicate value: "cpu"'],
        ),
        (
            {"resizePolicy": [{"resourceName": "x", "restartPolicy": ""}]},
            [
                'resizePolicy: Unsupported value: "x": supported values: "cpu", "memory"',
                "resizePolicy: Required value",
            ],
        ),
        (
            {"restartPolicyRules": [{"action": "X"}]},
            [
                "restartPolicy: Required value: must specify restartPolicy when restart rules are used",
                'restartPolicyRules[0].action: Unsupported value: "X": '
                'supported values: "Restart", "RestartAllContainers"',
                "restartPolicyRules[0].exitCodes: Required value: must be specified",
            ],
        ),
        (
            {"restartPolicy": "X"},
            ['restartPolicy: Unsupported value: "X": supported values: "Always", "Never", "OnFailure"'],
        ),
    ],
)
def test_containers_must_be_well_formed(fields: Json, errors: list[str]) -> None:
    assert first(**fields) == errors


@pytest.mark.parametrize(
    ("variable", "errors"),
    [
        ({"name": "A"}, []),
        ({"name": "a b!"}, []),
        ({"name": ""}, ["name: Required value"]),
        (
            {"name": "a=b"},
            [
                'name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII '
                "characters other than '='"
            ],
        ),
        (
            {"name": "A", "valueFrom": {}},
            [
                'valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
                "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            ],
        ),
        (
            {"name": "A", "value": "x", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
            ['valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
        ),
        (
            {
                "name": "A",
                "valueFrom": {
                    "secretKeyRef": {"name": "a", "key": "b"},
                    "configMapKeyRef": {"name": "a", "key": "b"},
                },
            },
            ['valueFrom: Invalid value: "": may not have more than one field specified at a time'],
        ),
        (
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nope"}}},
            [
                'valueFrom.fieldRef.fieldPath: Invalid value: "spec.nope": error converting fieldPath: '
                "field label not supported: spec.nope"
            ],
        ),
        (
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}},
            [
                'valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: '
                '"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", '
                '"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"'
            ],
        ),
        ({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}, []),
        ({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.host"}}}, []),
        (
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status['a']"}}},
            [
                "valueFrom.fieldRef.fieldPath: Invalid value: \"status['a']\": error converting fieldPath: "
                "field label does not support subscript: status['a']"
            ],
        ),
        (
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v2"}}},
            [
                'valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: '
                "unsupported pod version: v2"
            ],
        ),
        ({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi"}}}, []),
        (
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.x"}}},
            [
                'valueFrom.resourceFieldRef.resource: Unsupported value: "limits.x": supported values: "limits.cpu", '
                '"limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", '
                '"requests.memory"'
            ],
        ),
        (
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}},
            [
                'valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor\'s values 1m and 1 are '
                "supported with the cpu resource"
            ],
        ),
        (
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1024"}}},
            [
                'valueFrom.resourceFieldRef.divisor: Invalid value: "limits.memory": only divisor\'s values 1, 1k, 1M, '
                "1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource"
            ],
        ),
        (
            {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "../a", "key": "k"}}},
            [
                "valueFrom.fileKeyRef.path: Invalid value: \"../a\": must not contain '..'",
                'valueFrom.fileKeyRef.volumeName: Not found: "v"',
            ],
        ),
    ],
)
def test_variables_must_be_well_formed(variable: Json, errors: list[str]) -> None:
    assert [error.removeprefix("env[0].") for error in first(env=[variable])] == errors


def test_variable_from_file_requires_an_empty_dir() -> None:
    variable = {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}
    volumes = [{"name": "v", "configMap": {"name": "c"}}]
    assert errors_of(pod(container(env=[variable]), volumes=volumes)) == [
        'containers[0].env[0].valueFrom.fileKeyRef.volumeName: Invalid value: "v": '
        "referenced volume must be of type emptyDir"
    ]
    assert errors_of(pod(container(env=[variable]), volumes=[{"name": "v"}])) == []


@pytest.mark.parametrize(
    ("source", "errors"),
    [
        ({"configMapRef": {"name": "a"}, "prefix": "x"}, []),
        ({}, ['envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`']),
        ({"secretRef": {}}, ["envFrom[0].secretRef.name: Required value"]),
        (
            {"secretRef": {"name": "a"}, "configMapRef": {"name": "a"}},
            ['envFrom: Invalid value: "": may not have more than one field specified at a time'],
        ),
    ],
)
def test_sources_of_variables_must_be_well_formed(source: Json, errors: list[str]) -> None:
    assert first(envFrom=[source]) == errors


@pytest.mark.parametrize(
    ("probe", "errors"),
    [
        ({"exec": {"command": ["x"]}}, []),
        ({}, [": Required value: must specify a handler type"]),
        ({"exec": {}}, [".exec.command: Required value"]),
        (
            {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}},
            [".tcpSocket: Forbidden: may not specify more than 1 handler type"],
        ),
        (
            {"httpGet": {"port": 0, "scheme": "X", "httpHeaders": [{"name": "a b", "value": ""}]}},
            [
                ".httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
                '.httpGet.scheme: Unsupported value: "X": supported values: "HTTP", "HTTPS"',
                '.httpGet.httpHeaders: Invalid value: "a b": a valid HTTP header must consist of alphanumeric '
                "characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
            ],
        ),
        (
            {"tcpSocket": {"port": ""}},
            [
                '.tcpSocket.port: Invalid value: "": must contain only alpha-numeric characters (a-z, 0-9), '
                "and hyphens (-)",
                '.tcpSocket.port: Invalid value: "": must contain at least one letter (a-z)',
            ],
        ),
        (
            {"grpc": {"port": 1}, "periodSeconds": -1, "successThreshold": 2, "terminationGracePeriodSeconds": 0},
            [
                ".periodSeconds: Invalid value: -1: must be greater than or equal to 0",
                ".terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
                ".successThreshold: Invalid value: 2: must be 1",
            ],
        ),
    ],
)
def test_probes_must_be_well_formed(probe: Json, errors: list[str]) -> None:
    assert [error.removeprefix("livenessProbe") for error in first(livenessProbe=probe)] == errors


def test_readiness_probe_has_no_grace_period() -> None:
    probe = {"exec": {"command": ["x"]}, "successThreshold": 2, "terminationGracePeriodSeconds": 5}
    assert first(readinessProbe=probe) == [
        "readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes"
    ]


def test_a_hook_sleeps_no_longer_than_the_grace_period() -> None:
    hook = {"preStop": {"sleep": {"seconds": 31}}, "postStart": {}}
    assert first(lifecycle=hook) == [
        "lifecycle.postStart: Required value: must specify a handler type",
        "lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than "
        "terminationGracePeriodSeconds (30)",
    ]


@pytest.mark.parametrize(
    ("resources", "errors"),
    [
        ({"limits": {"cpu": "1", "example.com/gpu": "2"}}, []),
        (
            {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
            ['requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
        ),
        (
            {"limits": {"memory": "-1"}},
            [
                'limits[memory]: Invalid value: "-1": must be greater than or equal to 0',
                'requests[memory]: Invalid value: "-1": must be greater than or equal to 0',
            ],
        ),
        (
            {"requests": {"foo": "1"}},
            [
                'requests[foo]: Invalid value: "foo": must be a standard resource type or fully qualified',
                'requests[foo]: Invalid value: "foo": must be a standard resource for containers',
            ],
        ),
        (
            {"requests": {"pods": "1"}},
            ['requests[pods]: Invalid value: "pods": must be a standard resource for containers'],
        ),
        (
            {"requests": {"example.com/gpu": "1"}},
            ["limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            {"limits": {"example.com/gpu": "1500m"}},
            [
                'limits[example.com/gpu]: Invalid value: "1500m": must be an integer',
                'requests[example.com/gpu]: Invalid value: "1500m": must be an integer',
            ],
        ),
        (
            {"limits": {"example.com/gpu": "2"}, "requests": {"example.com/gpu": "1"}},
            ['requests: Invalid value: "1": must be equal to example.com/gpu limit of 2'],
        ),
        ({"limits": {"hugepages-2Mi": "2Mi"}}, [": Forbidden: HugePages require cpu or memory"]),
        (
            {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}},
            [
                'limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
                'requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
            ],
        ),
        (
            {"limits": {"requests.a.io/x": "1"}},
            [
                'limits[requests.a.io/x]: Invalid value: "requests.a.io/x": doesn\'t follow extended '
                "resource name standard",
                'requests[requests.a.io/x]: Invalid value: "requests.a.io/x": doesn\'t follow '
                "extended resource name standard",
            ],
        ),
        (
            {"claims": [{"name": "a"}, {"name": "a"}, {"name": ""}]},
            [
                'claims[0]: Not found: "a": must be one of the names in pod.spec.resourceClaims which is empty',
                'claims[1]: Duplicate value: "a"',
                'claims[1]: Not found: "a": must be one of the names in pod.spec.resourceClaims which is empty',
                "claims[2]: Required value",
            ],
        ),
    ],
)
def test_invalid_resources_are_rejected(resources: Json, errors: list[str]) -> None:
    found = [error.removeprefix("resources").removeprefix(".") for error in first(resources=resources)]
    assert found == errors


@pytest.mark.parametrize(
    ("used", "errors"),
    [
        ([{"name": "a", "request": "x"}, {"name": "a", "request": "y"}], []),
        ([{"name": "a", "request": "x"}, {"name": "a", "request": "x"}], ['[1]: Duplicate value: "a/x"']),
        ([{"name": "a", "request": "x"}, {"name": "a"}], ['[1]: Duplicate value: "a"']),
        ([{"name": "b"}], ['[0]: Not found: "b": must be one of the names in pod.spec.resourceClaims: a']),
    ],
)
def test_claims_are_used_once(used: list[Json], errors: list[str]) -> None:
    claims = [{"name": "a", "resourceClaimName": "c"}]
    found = errors_of(pod(container(resources={"claims": used}), resourceClaims=claims))
    assert [error.removeprefix("containers[0].resources.claims") for error in found] == errors


@pytest.mark.parametrize(
    ("containers", "resources", "errors"),
    [
        (
            {"requests": {"cpu": "2"}},
            {"requests": {"cpu": "1"}},
            ['requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2'],
        ),
        (
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
            {"limits": {"cpu": "1"}},
            ['containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1'],
        ),
        (
            {},
            {"limits": {"ephemeral-storage": "1"}},
            [
                'limits[ephemeral-storage]: Unsupported value: "ephemeral-storage": '
                'supported values: "cpu", "hugepages-", "memory"'
            ],
        ),
        (
            {},
            {"claims": [{"name": "a"}]},
            [
                "claims: Forbidden: claims may not be set for Resources at pod-level",
                'claims[0]: Not found: "a": must be one of the names in pod.spec.resourceClaims which is empty',
            ],
        ),
    ],
)
def test_resources_of_the_pod_cover_those_of_its_containers(
    containers: Json, resources: Json, errors: list[str]
) -> None:
    found = errors_of(pod(container(resources=containers), resources=resources))
    assert [error.removeprefix("resources.") for error in found] == errors


def test_names_are_unique_among_all_containers() -> None:
    init = [container(name="a"), container(name="a"), container()]
    assert errors_of(pod(container(), container(), initContainers=init)) == [
        'containers[1].name: Duplicate value: "c"',
        'initContainers[1].name: Duplicate value: "a"',
        'initContainers[2].name: Duplicate value: "c"',
    ]


def test_only_sidecars_have_probes() -> None:
    probe = {"exec": {"command": ["x"]}}
    init = [
        container(name="a", readinessProbe=probe, lifecycle={}),
        container(name="b", readinessProbe=probe, restartPolicy="Always"),
        container(name="d", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
    ]
    why = "may not be set for init containers without restartPolicy=Always"
    assert errors_of(pod(initContainers=init)) == [
        f"initContainers[0].lifecycle: Forbidden: {why}",
        f"initContainers[0].readinessProbe: Forbidden: {why}",
        'initContainers[2].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": '
        "must not be set to 'RestartContainer' for non-sidecar initContainers",
    ]


def test_ephemeral_containers_are_for_debugging_only_and_never_there_from_the_start() -> None:
    debug = {
        "name": "c",
        "image": " i",
        "targetContainerName": "x",
        "ports": [{"containerPort": 1}],
        "resources": {"limits": {"cpu": "1"}},
        "lifecycle": {},
        "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "s"}],
    }
    why = "cannot be set for an Ephemeral Container"
    assert errors_of(pod(ephemeralContainers=[debug], volumes=[{"name": "v"}])) == [
        'ephemeralContainers[0].image: Invalid value: " i": must not have leading or trailing whitespace',
        'ephemeralContainers[0].name: Duplicate value: "c"',
        'ephemeralContainers[0].targetContainerName: Not found: "x"',
        f"ephemeralContainers[0].ports: Forbidden: {why}",
        f"ephemeralContainers[0].resources: Forbidden: {why}",
        f"ephemeralContainers[0].lifecycle: Forbidden: {why}",
        f"ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: {why}",
        "ephemeralContainers: Forbidden: cannot be set on create",
    ]


@pytest.mark.parametrize(
    ("context", "errors"),
    [
        ({"runAsUser": -1}, [".runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"]),
        ({"privileged": True}, [".privileged: Forbidden: disallowed by cluster policy"]),
        ({"procMount": "X"}, ['.procMount: Unsupported value: "X": supported values: "Default", "Unmasked"']),
        (
            {"procMount": "Unmasked"},
            ['.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`'],
        ),
        (
            {"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "a"}},
            [
                '.seccompProfile.localhostProfile: Invalid value: {"Type":"RuntimeDefault","LocalhostProfile":"a"}: '
                "can only be set when seccomp type is Localhost"
            ],
        ),
        (
            {"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}},
            ['.appArmorProfile.localhostProfile: Invalid value: " a": must not be padded with whitespace'],
        ),
        (
            {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}},
            [
                ': Invalid value: {"Capabilities":{"Add":["CAP_SYS_ADMIN"],"Drop":null},"Privileged":null,'
                '"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,'
                '"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,'
                '"SeccompProfile":null,"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and '
                "`capabilities.Add` CAP_SYS_ADMIN"
            ],
        ),
        (
            {"windowsOptions": {"runAsUserName": "a\\b\\c"}},
            [
                '.windowsOptions.runAsUserName: Invalid value: "a\\\\b\\\\c": '
                "runAsUserName cannot contain more than one backslash"
            ],
        ),
    ],
)
def test_invalid_security_contexts_are_rejected(context: Json, errors: list[str]) -> None:
    assert [error.removeprefix("securityContext") for error in first(securityContext=context)] == errors


def test_privileged_containers_require_allow_privileged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CAPABILITIES, "allow_privileged", True)
    assert first(securityContext={"privileged": True}) == []


@pytest.mark.parametrize(
    ("mounts", "errors"),
    [
        ([{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}], []),
        ([{"name": "x", "mountPath": "/a"}], ['[0].name: Not found: "x"']),
        ([{"name": "v", "mountPath": ""}], ["[0].mountPath: Required value"]),
        (
            [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}],
            ['[1].mountPath: Invalid value: "/a": must be unique'],
        ),
        (
            [{"name": "v", "mountPath": "/a", "subPath": "/x", "subPathExpr": "../y"}],
            [
                '.subPath: Invalid value: "/x": must be a relative path',
                '[0].subPathExpr: Invalid value: "../y": subPathExpr and subPath are mutually exclusive',
                ".subPathExpr: Invalid value: \"../y\": must not contain '..'",
            ],
        ),
        (
            [{"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional", "recursiveReadOnly": "Enabled"}],
            [
                ".mountPropagation: Forbidden: Bidirectional mount propagation is available only to "
                "privileged containers",
                ".recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
                ".recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified",
            ],
        ),
    ],
)
def test_mounts_must_fit_the_volumes(mounts: list[Json], errors: list[str]) -> None:
    found = errors_of(pod(container(volumeMounts=mounts), volumes=[{"name": "v"}]))
    assert [error.removeprefix("containers[0].volumeMounts") for error in found] == errors


def test_only_claims_can_be_block_devices() -> None:
    devices = [
        {"name": "v", "devicePath": "/a"},
        {"name": "p", "devicePath": "/../b"},
        {"name": "p", "devicePath": "/c"},
    ]
    mounts = [{"name": "p", "mountPath": "/c"}]
    volumes = [{"name": "v"}, {"name": "p", "persistentVolumeClaim": {"claimName": "c"}}]
    found = errors_of(pod(container(volumeDevices=devices, volumeMounts=mounts), volumes=volumes))
    assert [error.removeprefix("containers[0].") for error in found] == [
        'volumeMounts[0].name: Invalid value: "p": must not already exist in volumeDevices',
        'volumeMounts[0].mountPath: Invalid value: "/c": must not already exist as a path in volumeDevices',
        'volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or '
        "Ephemeral for block mode",
        "volumeDevices[1].devicePath: Invalid value: \"/../b\": can not contain backsteps ('..')",
        'volumeDevices[1].name: Invalid value: "p": must not already exist in volumeMounts',
        'volumeDevices[2].name: Invalid value: "p": must be unique',
        'volumeDevices[2].name: Invalid value: "p": must not already exist in volumeMounts',
        'volumeDevices[2].devicePath: Invalid value: "/c": must not already exist as a path in volumeMounts',
    ]
