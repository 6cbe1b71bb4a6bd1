"""PodSecurity: which pods each level of the standards lets pass, and what it says about the others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.kube.admission.podsecurity.checks import CheckedPod
from pilothouse.kube.admission.podsecurity.evaluator import (
    evaluate,
    in_detail,
    one_of_each_controller_first,
    warnings_about,
)
from pilothouse.kube.admission.podsecurity.policy import Configuration, Level, LevelVersion, NamespacePolicy, policy_of

BASELINE, RESTRICTED = LevelVersion(Level.baseline), LevelVersion(Level.restricted)
GOOD: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(security: dict[str, Any] | None = None, **spec: Any) -> CheckedPod:
    container = {"name": "c", "securityContext": GOOD if security is None else security}
    return CheckedPod({}, {"containers": [container], **spec})


def found(wanted: LevelVersion, checked: CheckedPod) -> str:
    return in_detail(evaluate(wanted, checked))


def test_a_pod_that_gives_up_everything_may_run_at_the_strictest_level() -> None:
    assert evaluate(RESTRICTED, pod()) == []


@pytest.mark.parametrize(
    ("checked", "said"),
    [
        (pod(hostNetwork=True, hostIPC=True), "host namespaces (hostNetwork=true, hostIPC=true)"),
        (pod({"privileged": True}), 'privileged (container "c" must not set securityContext.privileged=true)'),
        (
            pod({"procMount": "Unmasked"}),
            'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            pod({"capabilities": {"add": ["SYS_TIME", "CHOWN", "NET_RAW"]}}),
            'non-default capabilities (container "c" must not include "NET_RAW", "SYS_TIME" in '
            "securityContext.capabilities.add)",
        ),
        (pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), 'hostPath volumes (volume "v")'),
        (
            pod(securityContext={"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            pod({"seLinuxOptions": {"type": "spc_t"}}, securityContext={"seLinuxOptions": {"user": "u", "role": "r"}}),
            'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: type "spc_t"; '
            "user may not be set; role may not be set)",
        ),
        (
            pod(securityContext={"windowsOptions": {"hostProcess": True}}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            pod({"appArmorProfile": {"type": "Unconfined"}}),
            'forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined")',
        ),
    ],
)
def test_the_baseline_refuses_what_gives_power_over_the_node(checked: CheckedPod, said: str) -> None:
    assert found(BASELINE, checked) == said


def test_the_restricted_level_asks_a_silent_pod_for_everything() -> None:
    assert [violation.reason for violation in evaluate(RESTRICTED, pod({}))] == [
        "allowPrivilegeEscalation != false",
        "unrestricted capabilities",
        "runAsNonRoot != true",
        "seccompProfile",
    ]


def test_what_the_pod_says_for_all_its_containers_counts_for_those_that_say_nothing() -> None:
    said = {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}}
    silent = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert evaluate(RESTRICTED, pod(silent, securityContext=said)) == []


def test_a_volume_is_named_with_its_type_once_however_many_there_are() -> None:
    volumes = [{"name": "a", "nfs": {}}, {"name": "b", "nfs": {}}, {"name": "c", "emptyDir": {}}]
    said = 'restricted volume types (volumes "a", "b" use restricted volume type "nfs")'
    assert found(RESTRICTED, pod(volumes=volumes)) == said


def test_a_host_port_is_told_with_the_containers_that_use_it() -> None:
    containers = [{"name": name, "ports": [{"hostPort": 80}]} for name in "ab"]
    assert found(BASELINE, CheckedPod({}, {"containers": containers})) == (
        'hostPort (containers "a", "b" use hostPort 80)'
    )


def test_seccomp_was_an_annotation_before_it_was_a_field() -> None:
    annotations = {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
    checked = CheckedPod({"annotations": annotations}, {"containers": []})
    said = 'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")'
    assert found(LevelVersion(Level.baseline, 18), checked) == said
    assert evaluate(LevelVersion(Level.baseline, 19), checked) == []


@pytest.mark.parametrize(("minor", "refused"), [(33, False), (34, True), (None, True), (99, True)])
def test_a_check_applies_from_the_version_that_it_came_with(minor: int | None, refused: bool) -> None:
    container = {"name": "c", "livenessProbe": {"httpGet": {"host": "example.com"}}}
    checked = CheckedPod({}, {"containers": [container]})
    assert bool(evaluate(LevelVersion(Level.baseline, minor), checked)) is refused


def test_a_windows_pod_need_not_speak_of_what_windows_does_not_have() -> None:
    checked = pod({"runAsNonRoot": True}, os={"name": "windows"})
    assert evaluate(RESTRICTED, checked) == []
    assert len(evaluate(LevelVersion(Level.restricted, 24), checked)) == 3


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "privileged": st.booleans(),
            "allowPrivilegeEscalation": st.booleans(),
            "runAsNonRoot": st.booleans(),
            "runAsUser": st.sampled_from([0, 1000]),
            "procMount": st.sampled_from(["Default", "Unmasked"]),
            "seccompProfile": st.sampled_from([{"type": "RuntimeDefault"}, {"type": "Unconfined"}]),
            "capabilities": st.sampled_from([{"drop": ["ALL"]}, {"add": ["NET_ADMIN"]}]),
        },
    ),
    st.booleans(),
    st.one_of(st.none(), st.integers(min_value=0, max_value=40)),
)
def test_what_the_restricted_level_lets_pass_the_baseline_lets_pass_too(
    security: dict[str, Any], host: bool, minor: int | None
) -> None:
    checked = pod(security, hostPID=host)
    if not evaluate(LevelVersion(Level.restricted, minor), checked):
        assert not evaluate(LevelVersion(Level.baseline, minor), checked)


def labels(**said: str) -> dict[str, str]:
    return {f"pod-security.kubernetes.io/{name.replace('_', '-')}": value for name, value in said.items()}


def test_a_namespace_that_enforces_warns_of_the_same_unless_it_says_otherwise() -> None:
    said = policy_of(labels(enforce="restricted", enforce_version="v1.30"), NamespacePolicy()).policy
    assert said.warn == said.enforce == LevelVersion(Level.restricted, 30)
    assert policy_of(labels(enforce="restricted", warn="baseline"), NamespacePolicy()).policy.warn == BASELINE


def test_a_level_that_does_not_exist_is_the_strictest_when_enforced_and_none_when_only_told() -> None:
    wrong = policy_of(labels(enforce="x", audit="y", warn_version="1.2"), NamespacePolicy())
    assert wrong.policy == NamespacePolicy(enforce=RESTRICTED)
    assert [error.body for error in wrong.errors] == [
        'Invalid value: "x": must be one of privileged, baseline, restricted',
        'Invalid value: "y": must be one of privileged, baseline, restricted',
        'Invalid value: "1.2": must be "latest" or "v1.x"',
    ]


def running(name: str, owner: str = "", **spec: Any) -> dict[str, Any]:
    owners = [{"uid": owner, "controller": True}] if owner else []
    return {"metadata": {"name": name, "ownerReferences": owners}, "spec": {"containers": [], **spec}}


def test_pods_with_the_same_fault_are_told_together_under_the_first_name() -> None:
    pods = [running(name, hostPID=True) for name in ("c", "a", "b")] + [running("z", hostPID=True, hostIPC=True)]
    assert warnings_about(pods, "here", BASELINE, now=lambda: 0.0) == [
        'existing pods in namespace "here" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 3 other pods): host namespaces",
    ]


def test_when_time_is_up_the_rest_of_the_pods_is_counted_only() -> None:
    moments = iter([0.0, 0.5, 1.5])
    said = warnings_about([running(name) for name in "abc"], "here", BASELINE, now=lambda: next(moments))
    assert said == ["new PodSecurity enforce level only checked against the first 2 of 3 existing pods"]


def test_one_pod_of_each_controller_is_looked_at_first() -> None:
    pods = [running("a", "x"), running("b", "x"), running("c"), running("d", "y")]
    assert [pod["metadata"]["name"] for pod in one_of_each_controller_first(pods)] == ["a", "c", "d", "b"]


def test_a_configuration_is_refused_with_everything_that_is_wrong() -> None:
    wrong = {
        "defaults": {"enforce": "x", "warn-version": "y"},
        "exemptions": {"namespaces": ["A", "b", "b"], "usernames": [""]},
    }
    with pytest.raises(ValueError) as refused:
        Configuration.parse(wrong)
    for part in ("defaults.enforce", "defaults.warn-version", "namespaces[0]", "namespaces[2]", "usernames[0]"):
        assert part in str(refused.value)


def test_a_configuration_says_what_holds_where_nothing_is_said() -> None:
    parsed = Configuration.parse({"defaults": {"enforce": "baseline"}, "exemptions": {"usernames": ["u"]}})
    assert parsed.defaults == NamespacePolicy(enforce=BASELINE)
    assert parsed.exempt_users == {"u"}
