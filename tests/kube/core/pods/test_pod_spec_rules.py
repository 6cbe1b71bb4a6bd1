"""What the rest of a pod's spec may say: placement, names, network, security, operating system, annotations."""

from __future__ import annotations

from typing import Any

import pytest
from sample_pods import container, errors_of, pod, stored

from pilothouse.kube.core.pods.validation.pod import replica_form, validate_new_pod, validate_pod_template
from pilothouse.machinery.field import root
from pilothouse.machinery.objects import Json

QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        (
            {"restartPolicy": "X"},
            ['restartPolicy: Unsupported value: "X": supported values: "Always", "OnFailure", "Never"'],
        ),
        (
            {"dnsPolicy": "X"},
            [
                'dnsPolicy: Unsupported value: "X": supported values: "ClusterFirstWithHostNet", "ClusterFirst", '
                '"Default", "None"'
            ],
        ),
        (
            {"activeDeadlineSeconds": 0},
            ["activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        ),
        (
            {"preemptionPolicy": "X"},
            ['preemptionPolicy: Unsupported value: "X": supported values: "PreemptLowerPriority", "Never"'],
        ),
        (
            {"readinessGates": [{"conditionType": "a b"}]},
            [f'readinessGates[0].conditionType: Invalid value: "a b": {QUALIFIED}'],
        ),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, ['schedulingGates[1]: Duplicate value: "a"']),
        (
            {"schedulingGates": [{"name": "a"}], "nodeName": "n"},
            ["nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
        ),
        (
            {"overhead": {"cpu": "-1"}},
            ['overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (
            {"hostAliases": [{"ip": "1.2.3", "hostnames": ["a_b"]}]},
            [
                'hostAliases[0].ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. '
                "10.9.8.7 or 2001:db8::ffff)",
                'hostAliases[0].hostnames[0]: Invalid value: "a_b": a lowercase RFC 1123 subdomain '
                "must consist of lower "
                "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
                "'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        ),
        (
            {"hostnameOverride": "h", "setHostnameAsFQDN": True, "hostNetwork": True},
            [
                "hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
                "hostnameOverride: Forbidden: may not be specified when hostNetwork is true",
            ],
        ),
        (
            {"hostUsers": False, "hostNetwork": True, "hostPID": True, "hostIPC": True},
            [
                "hostNetwork: Forbidden: when `hostUsers` is false",
                "HostPID: Forbidden: when `hostUsers` is false",
                "HostIPC: Forbidden: when `hostUsers` is false",
            ],
        ),
        (
            {
                "resourceClaims": [
                    {"name": "a"},
                    {"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"},
                ]
            },
            [
                "resourceClaims[0]: Invalid value: "
                '{"Name":"a","ResourceClaimName":null,"ResourceClaimTemplateName":null}: '
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                'resourceClaims[1].name: Duplicate value: "a"',
                "resourceClaims[1]: Invalid value: "
                '{"Name":"a","ResourceClaimName":"x","ResourceClaimTemplateName":"y"}: '
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ],
        ),
    ],
)
def test_fields_of_the_spec_must_be_well_formed(spec: Json, errors: list[str]) -> None:
    assert errors_of(pod(**spec)) == errors


@pytest.mark.parametrize(
    ("toleration", "errors"),
    [
        ({"operator": "Exists"}, []),
        ({"key": "k", "value": "v"}, []),
        (
            {},
            [
                'operator: Invalid value: "": operator must be Exists when `key` is empty, which means '
                '"match all values and all keys"'
            ],
        ),
        (
            {"key": "k", "operator": "Exists", "value": "v"},
            ["operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'"],
        ),
        ({"key": "k", "value": "a b"}, [f'operator: Invalid value: "a b": {LABEL_VALUE}']),
        ({"key": "k", "operator": "X"}, ['operator: Unsupported value: "X": supported values: "Equal", "Exists"']),
        (
            {"key": "k", "operator": "Gt", "value": "1"},
            ['operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'],
        ),
        (
            {"key": "k", "effect": "X"},
            ['effect: Unsupported value: "X": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'],
        ),
        (
            {"key": "k", "tolerationSeconds": 1},
            ["effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set"],
        ),
    ],
)
def test_tolerations_must_be_well_formed(toleration: Json, errors: list[str]) -> None:
    found = errors_of(pod(tolerations=[toleration]))
    assert [error.removeprefix("tolerations[0].") for error in found] == errors


REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))


@pytest.mark.parametrize(
    ("affinity", "errors"),
    [
        ({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}, []),
        (
            {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}},
            [f"nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value: must have at least one node selector term"],
        ),
        (
            {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "k", "operator": "In", "values": ["a b"]},
                                    {"key": "k", "operator": "X"},
                                ],
                                "matchFields": [
                                    {"key": "k", "operator": "Exists"},
                                    {"key": "metadata.name", "operator": "In"},
                                ],
                            }
                        ]
                    }
                }
            },
            [
                f'nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "a b": '
                f"{LABEL_VALUE}",
                f'nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[1].operator: Invalid value: "X": '
                "not a valid selector operator",
                f'nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0].operator: Invalid value: "Exists": '
                "not a valid selector operator",
                f'nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "k": '
                "not a valid field selector key",
                f"nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[1].values: Required value: "
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            ],
        ),
        (
            {
                "nodeAffinity": {
                    PREFERRED: [
                        {
                            "weight": 101,
                            "preference": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["a b"]}]},
                        }
                    ]
                }
            },
            [f"nodeAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100"],
        ),
        (
            {
                "podAffinity": {
                    REQUIRED: [
                        {
                            "topologyKey": "z",
                            "matchLabelKeys": ["a"],
                            "namespaces": ["A"],
                        }
                    ]
                }
            },
            [
                f'podAffinity.{REQUIRED}[0].namespace: Invalid value: "A": a lowercase RFC 1123 label must consist of '
                "lower case alphanumeric characters or '-', and must start and end with an "
                "alphanumeric character (e.g. "
                "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                f"podAffinity.{REQUIRED}[0].matchLabelKeys: Forbidden: must not be specified when "
                f"labelSelector is not set",
            ],
        ),
        (
            {
                "podAntiAffinity": {
                    PREFERRED: [
                        {
                            "weight": 1,
                            "podAffinityTerm": {
                                "topologyKey": "z",
                                "labelSelector": {"matchLabels": {"a": "x"}},
                                "matchLabelKeys": ["a"],
                                "mismatchLabelKeys": ["a"],
                            },
                        }
                    ]
                }
            },
            [
                f'podAntiAffinity.{PREFERRED}[0].podAffinityTerm[0]: Invalid value: "a": '
                "exists in both matchLabelKeys and labelSelector",
                f'podAntiAffinity.{PREFERRED}[0].podAffinityTerm[0]: Invalid value: "a": '
                "exists in both matchLabelKeys and labelSelector",
                f'podAntiAffinity.{PREFERRED}[0].podAffinityTerm.matchLabelKeys[0]: Invalid value: "a": '
                "exists in both matchLabelKeys and mismatchLabelKeys",
            ],
        ),
    ],
)
def test_affinities_must_be_well_formed(affinity: Json, errors: list[str]) -> None:
    found = errors_of(pod(meta={"labels": {"a": "x"}}, affinity=affinity))
    assert [error.removeprefix("affinity.") for error in found] == errors


def constraint(**fields: Any) -> Json:
    return {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, **fields}


@pytest.mark.parametrize(
    ("constraints", "errors"),
    [
        ([constraint()], []),
        ([constraint(matchLabelKeys=["app"])], []),
        (
            [constraint(maxSkew=0, topologyKey="", whenUnsatisfiable="X")],
            [
                "[0].maxSkew: Invalid value: 0: must be greater than zero",
                "[0].topologyKey: Required value: can not be empty",
                '[0].whenUnsatisfiable: Unsupported value: "X": supported values: "DoNotSchedule", "ScheduleAnyway"',
            ],
        ),
        ([constraint(), constraint()], ['[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"']),
        (
            [constraint(whenUnsatisfiable="ScheduleAnyway", minDomains=0, nodeAffinityPolicy="X")],
            [
                "[0].minDomains: Invalid value: 0: must be greater than zero",
                "[0].minDomains: Invalid value: 0: can only use minDomains if whenUnsatisfiable=DoNotSchedule, "
                "not ScheduleAnyway",
                '[0].nodeAffinityPolicy: Unsupported value: "X": supported values: "Honor", "Ignore"',
            ],
        ),
    ],
)
def test_spread_constraints_must_be_well_formed(constraints: list[Json], errors: list[str]) -> None:
    found = errors_of(pod(meta={"labels": {"app": "x"}}, topologySpreadConstraints=constraints))
    assert [error.removeprefix("topologySpreadConstraints") for error in found] == errors


@pytest.mark.parametrize(
    ("policy", "config", "errors"),
    [
        ("None", None, [": Required value: must provide `dnsConfig` when `dnsPolicy` is None"]),
        (
            "None",
            {},
            [".nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None"],
        ),
        (
            "ClusterFirst",
            {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "x"], "options": [{}]},
            [
                '.nameservers: Invalid value: ["1.1.1.1","1.1.1.2","1.1.1.3","x"]: must not have '
                "more than 3 nameservers",
                '.nameservers[3]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
                ".options[0]: Required value: must not be empty",
            ],
        ),
        ("ClusterFirst", {"searches": [".", "a_b.c.", "_x"]}, []),
    ],
)
def test_dns_must_be_well_formed(policy: str, config: Json | None, errors: list[str]) -> None:
    spec: Json = {"dnsPolicy": policy} | ({"dnsConfig": config} if config is not None else {})
    assert [error.removeprefix("dnsConfig") for error in errors_of(pod(**spec))] == errors


@pytest.mark.parametrize(
    ("context", "spec", "errors"),
    [
        (
            {"fsGroup": -1, "supplementalGroups": [1, -1]},
            {},
            [
                "fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                "supplementalGroups[1]: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ],
        ),
        (
            {},
            {"shareProcessNamespace": True, "hostPID": True},
            ["shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"],
        ),
        (
            {"sysctls": [{"name": "a", "value": ""}, {"name": "a", "value": ""}, {"name": "", "value": ""}]},
            {},
            [
                'sysctls[1].name: Duplicate value: "a"',
                "sysctls[2].name: Required value",
            ],
        ),
        (
            {"sysctls": [{"name": "net.a", "value": ""}, {"name": "net/b", "value": ""}]},
            {"hostNetwork": True},
            [
                "sysctls[0].name: Invalid value: \"net.a\": may not be specified when 'hostNetwork' is true",
                "sysctls[1].name: Invalid value: \"net/b\": may not be specified when 'hostNetwork' is true",
            ],
        ),
        (
            {"sysctls": [{"name": "kernel.shmmax", "value": ""}, {"name": "fs.mqueue.x", "value": ""}]},
            {"hostIPC": True},
            [
                "sysctls[0].name: Invalid value: \"kernel.shmmax\": may not be specified when 'hostIPC' is true",
                "sysctls[1].name: Invalid value: \"fs.mqueue.x\": may not be specified when 'hostIPC' is true",
            ],
        ),
        (
            {"sysctls": [{"name": "A", "value": ""}]},
            {},
            [
                'sysctls[0].name: Invalid value: "A": must have at most 253 characters and match regex '
                r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            ],
        ),
        (
            {"fsGroupChangePolicy": "X", "supplementalGroupsPolicy": "X", "seLinuxChangePolicy": "MountOption"},
            {},
            [
                'fsGroupChangePolicy: Unsupported value: "X": supported values: "Always", "OnRootMismatch"',
                'supplementalGroupsPolicy: Unsupported value: "X": supported values: "Merge", "Strict"',
                'seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"',
            ],
        ),
    ],
)
def test_invalid_pod_security_context_is_rejected(context: Json, spec: Json, errors: list[str]) -> None:
    found = errors_of(pod(securityContext=context, **spec))
    assert [error.removeprefix("securityContext.") for error in found] == errors


@pytest.mark.parametrize(
    ("system", "fields", "errors"),
    [
        ("", {}, ["os.name: Required value"]),
        ("beos", {}, ['os: Unsupported value: "beos": supported values: "linux", "windows"']),
        (
            "linux",
            {"securityContext": {"windowsOptions": {}}},
            ["securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"],
        ),
        (
            "windows",
            {"hostPID": True, "securityContext": {"runAsUser": 1, "sysctls": [{"name": "a", "value": "b"}]}},
            [
                "hostPID: Forbidden: cannot be set for a windows pod",
                "securityContext.sysctls: Forbidden: cannot be set for a windows pod",
                "securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
            ],
        ),
        (
            "windows",
            {"resources": {"limits": {"cpu": "1"}}},
            ["resources: Forbidden: may not be set for a windows pod"],
        ),
    ],
)
def test_fields_of_another_operating_system_are_rejected(system: str, fields: Json, errors: list[str]) -> None:
    assert errors_of(pod(os={"name": system}, **fields)) == errors


def test_host_processes_are_all_or_none_and_on_the_hosts_network() -> None:
    windows = {"windowsOptions": {"hostProcess": True}}
    parts = (container(name="a", securityContext=windows), container(name="b"))
    assert errors_of(pod(*parts)) == [
        'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess '
        "containers",
        "hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers",
        "spec: Forbidden: hostProcess containers are disallowed by cluster policy",
    ]


@pytest.mark.parametrize(
    ("annotations", "errors"),
    [
        (
            {"kubernetes.io/config.mirror": "m"},
            [
                '[kubernetes.io/config.mirror]: Invalid value: "m": must set spec.nodeName if mirror '
                "pod annotation is set"
            ],
        ),
        (
            {"controller.kubernetes.io/pod-deletion-cost": "+1"},
            ['[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a 32bit integer'],
        ),
        ({"controller.kubernetes.io/pod-deletion-cost": "-2147483648"}, []),
        (
            {"controller.kubernetes.io/pod-deletion-cost": "2147483648"},
            ['[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "2147483648": must be a 32bit integer'],
        ),
        (
            {"scheduler.alpha.kubernetes.io/tolerations": '[{"Key":"k","operator":"X"}]'},
            [
                '.scheduler.alpha.kubernetes.io/tolerations[0].operator: Unsupported value: "X": '
                'supported values: "Equal", "Exists"'
            ],
        ),
        (
            {"scheduler.alpha.kubernetes.io/tolerations": "{}"},
            [
                ': Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot unmarshal object into Go '
                "value of type []core.Toleration"
            ],
        ),
        (
            {"seccomp.security.alpha.kubernetes.io/pod": "x"},
            ['.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "x": must be a valid seccomp profile'],
        ),
        (
            {"container.apparmor.security.beta.kubernetes.io/z": "x"},
            [
                '[container.apparmor.security.beta.kubernetes.io/z]: Invalid value: "z": container not found',
                '[container.apparmor.security.beta.kubernetes.io/z]: Invalid value: "x": invalid '
                'AppArmor profile name: "x"',
            ],
        ),
    ],
)
def test_well_known_annotations_are_validated(annotations: Json, errors: list[str]) -> None:
    found = errors_of(pod(meta={"annotations": annotations}))
    assert [error.removeprefix("metadata.annotations") for error in found] == errors


def test_profiles_in_annotations_and_fields_agree() -> None:
    annotations = {
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        "container.seccomp.security.alpha.kubernetes.io/c": "localhost/a",
        "container.apparmor.security.beta.kubernetes.io/c": "runtime/default",
    }
    context = {
        "seccompProfile": {"type": "Localhost", "localhostProfile": "b"},
        "appArmorProfile": {"type": "Unconfined"},
    }
    spec = {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}
    made = pod(container(securityContext=context), meta={"annotations": annotations}, **spec)
    assert errors_of(made) == [
        "securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match",
        "containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: "
        "seccomp profile in annotation and field must match",
        "containers[0].securityContext.appArmorProfile.type: Forbidden: "
        "apparmor type in annotation and field must match",
    ]


def test_template_errors_have_the_template_path() -> None:
    template = pod(container(image=" i"), ephemeralContainers=[], meta={"labels": {"a": "b c"}})
    template["spec"]["ephemeralContainers"] = [
        container(name="e", terminationMessagePolicy="File", imagePullPolicy="Never")
    ]
    template["spec"] |= {"terminationGracePeriodSeconds": 1, "restartPolicy": "Always", "dnsPolicy": "Default"}
    template["spec"]["containers"][0] |= {"terminationMessagePolicy": "File", "imagePullPolicy": "Never"}
    assert list(map(str, validate_pod_template(template, root("spec", "template")))) == [
        f'spec.template.labels: Invalid value: "b c": {LABEL_VALUE}',
        "spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template",
    ]


def test_ports_on_the_hosts_network_are_left_open_only_in_templates() -> None:
    part = container(ports=[{"containerPort": 80, "hostPort": 81}])
    error = "containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"
    assert errors_of(pod(part, hostNetwork=True)) == [error]


def _with_token_volume(name: str, *, mounted: str) -> Json:
    mounts = [{"name": mounted, "mountPath": "/token"}]
    token = {"sources": [{"serviceAccountToken": {"path": "token"}}]}
    return stored(
        pod(
            container(volumeMounts=mounts),
            serviceAccountName="default",
            volumes=[{"name": name, "projected": token}],
        )
    )


def test_replicas_differ_in_the_name_of_their_token_volume_only() -> None:
    one, two = (
        _with_token_volume(f"kube-api-access-{suffix}", mounted=f"kube-api-access-{suffix}")
        for suffix in ("b2c4d", "x5z6w")
    )
    assert replica_form(one) == replica_form(two) is not None
    assert list(validate_new_pod(one)) == list(validate_new_pod(two)) == []
    other = _with_token_volume("kube-api-access-b2c4d", mounted="kube-api-access-b2c4d")
    other["spec"]["containers"][0]["image"] = "other"
    assert replica_form(other) != replica_form(one)


def test_an_invalid_pod_is_refused_after_a_valid_one_of_similar_names() -> None:
    valid = _with_token_volume("kube-api-access-b2c4d", mounted="kube-api-access-b2c4d")
    assert list(validate_new_pod(valid)) == []
    for missing in ("kube-api-access-aaaaa", "kube-api-access-x5z6w"):
        invalid = _with_token_volume("kube-api-access-b2c4d", mounted=missing)
        assert [error.field for error in validate_new_pod(invalid)] == ["spec.containers[0].volumeMounts[0].name"]
