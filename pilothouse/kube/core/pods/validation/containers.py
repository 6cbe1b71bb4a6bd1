"""Rules for containers, init containers and ephemeral containers, restart rules, probes and lifecycle hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pilothouse.kinds.pods import is_sidecar
from pilothouse.kube.core.pods.validation.container import PodContext, validate_container, validate_image_whitespace
from pilothouse.kube.validation.fields import non_empty, nonnegative, one_of, port_num_or_name
from pilothouse.machinery.field import (
    Errors,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_http_header_name

if TYPE_CHECKING:
    from pilothouse.kube.core.pods.validation.container import PodContext


_LONG_RUNNING = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_NOT_IN_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_NO_EPHEMERAL = "cannot be set for an Ephemeral Container"
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_EXIT_CODE_OPERATORS = ("In", "NotIn")
_MAX_RESTART_RULES = 20
_MAX_EXIT_CODES = 255
_NO_RESTART_POLICY = "must specify restartPolicy when restart rules are used"


def validate_containers(containers: Sequence[Json], path: Path, pod: PodContext) -> Errors:
    if not containers:
        yield required(path)
        return
    names: set[str] = set()
    for position, container in enumerate(containers):
        at, name = path.index(position), container.get("name") or ""
        yield from validate_container(container, at, pod)
        if name in names:
            yield duplicate(at.child("name"), name)
        names.add(name)
        yield from _validate_long_running(container, at, pod)
        yield from _validate_restart_policy(container, at, pod)
    yield from _validate_host_ports(enumerate(containers), path)


def validate_init_containers(
    containers: Sequence[Json], regular: Iterable[Json], path: Path, pod: PodContext
) -> Errors:
    names = {container.get("name") or "" for container in regular}
    for position, container in enumerate(containers):
        at, name = path.index(position), container.get("name") or ""
        yield from validate_container(container, at, pod)
        policy = container.get("restartPolicy")
        if policy == "Always" and not pod.options.allow_restart_all_containers:
            if container.get("restartPolicyRules"):
                reason = "restartPolicyRules are not allowed for init containers with restart policy Always"
                yield forbidden(at.child("restartPolicyRules"), reason)
        elif policy is not None:
            yield from _validate_restart_policy(container, at, pod)
        elif container.get("restartPolicyRules"):
            yield required(at.child("restartPolicy"), _NO_RESTART_POLICY)
        if name in names:
            yield duplicate(at.child("name"), name)
        elif name:
            names.add(name)
        # Init containers run one by one: only ports of the same container can conflict. Upstream reports index 0.
        yield from _validate_host_ports([(0, container)], path)
        if is_sidecar(container):
            yield from _validate_long_running(container, at, pod)
        else:
            for name in _LONG_RUNNING:
                if container.get(name) is not None:
                    yield forbidden(at.child(name), "may not be set for init containers without restartPolicy=Always")
            if not pod.options.allow_restart_container_for_init:
                for position, policy in enumerate(container.get("resizePolicy") or ()):
                    if policy.get("restartPolicy") == "RestartContainer":
                        field_path = at.child("resizePolicy").index(position).child("restartPolicy")
                        reason = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                        yield invalid(field_path, "RestartContainer", reason)


def _validate_long_running(container: Json, path: Path, pod: PodContext) -> Errors:
    if (lifecycle := container.get("lifecycle")) is not None:
        yield from validate_lifecycle(lifecycle, path.child("lifecycle"), pod)
    for name in _LONG_RUNNING[1:]:
        if (probe := container.get(name)) is not None:
            yield from validate_probe(probe, path.child(name), pod, kind=name)


def _validate_host_ports(containers: Iterable[tuple[int, Json]], path: Path) -> Errors:
    taken: set[str] = set()
    for position, container in containers:
        for index, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            address = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if address in taken:
                yield duplicate(path.index(position).child("ports").index(index).child("hostPort"), address)
            taken.add(address)


def validate_ephemeral_containers(
    containers: Sequence[Json], others: Iterable[Json], path: Path, pod: PodContext
) -> Errors:
    targets = {container.get("name") or "" for container in others}
    names = set(targets)
    for position, container in enumerate(containers):
        at, name = path.index(position), container.get("name") or ""
        yield from validate_container(container, at, pod)
        yield from validate_image_whitespace(container, at)
        if name in names:
            yield duplicate(at.child("name"), name)
        names.add(name)
        target = container.get("targetContainerName")
        if target and target not in targets:
            yield not_found(at.child("targetContainerName"), target)
        for name in _NOT_IN_EPHEMERAL:
            value = container.get(name)
            if value or (value is not None and name != "resources"):
                yield forbidden(at.child(name), _NO_EPHEMERAL)
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    yield forbidden(at.child("volumeMounts").index(position).child(name), _NO_EPHEMERAL)


def _validate_restart_policy(container: Json, path: Path, pod: PodContext) -> Errors:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None and not rules:
        return
    if policy is None:
        yield required(path.child("restartPolicy"), _NO_RESTART_POLICY)
    else:
        yield from one_of(policy, path.child("restartPolicy"), _RESTART_POLICIES)
    if len(rules) > _MAX_RESTART_RULES:
        yield too_many(path.child("restartPolicyRules"), len(rules), _MAX_RESTART_RULES)
    actions = _RESTART_ACTIONS if pod.options.allow_restart_all_containers else _RESTART_ACTIONS[:1]
    for position, rule in enumerate(rules):
        rule_path = path.child("restartPolicyRules").index(position)
        yield from one_of(rule.get("action") or "", rule_path.child("action"), actions)
        codes = rule.get("exitCodes")
        if codes is None:
            yield required(rule_path.child("exitCodes"), "must be specified")
        else:
            yield from one_of(
                codes.get("operator") or "", rule_path.child("exitCodes", "operator"), _EXIT_CODE_OPERATORS
            )
            if len(codes.get("values") or ()) > _MAX_EXIT_CODES:
                yield too_many(rule_path.child("exitCodes", "values"), len(codes["values"]), _MAX_EXIT_CODES)


_SCHEMES = ("HTTP", "HTTPS")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")

_Action: TypeAlias = Callable[[Json, Path, int | None], Errors]
_SIGNAL_NAMES = (
    "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT RTMAX RTMIN SEGV STKFLT STOP SYS "
    "TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ"
)
_LINUX_SIGNALS = tuple(
    sorted(
        [
            *(f"SIG{name}" for name in _SIGNAL_NAMES.split()),
            *(f"SIGRTMIN+{number}" for number in range(1, 16)),
            *(f"SIGRTMAX-{number}" for number in range(1, 15)),
        ]
    )
)
_SIGNALS = {"linux": _LINUX_SIGNALS, "windows": ("SIGKILL", "SIGTERM")}


def validate_probe(probe: Json, path: Path, pod: PodContext, *, kind: str) -> Errors:
    """`kind` is the name of the field. Each kind of probe has special rules."""
    yield from _validate_handler(probe, _PROBE_ACTIONS, path, pod.grace_period)
    for name in _NUMBERS:
        if (number := probe.get(name)) is not None and number < 0:
            yield from nonnegative(number, path.child(name))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield invalid(path.child("terminationGracePeriodSeconds"), grace, "must be greater than 0")
    if kind != "readinessProbe":
        successes = probe.get("successThreshold") or 0
        if successes != 1:
            yield invalid(path.child("successThreshold"), successes, "must be 1")
    elif grace is not None:
        yield invalid(path.child("terminationGracePeriodSeconds"), grace, "must not be set for readinessProbes")


def validate_lifecycle(lifecycle: Json, path: Path, pod: PodContext) -> Errors:
    for name in ("postStart", "preStop"):
        if (hook := lifecycle.get(name)) is not None:
            yield from _validate_handler(hook, _HOOK_ACTIONS, path.child(name), pod.grace_period)
    if (signal := lifecycle.get("stopSignal")) is not None:
        stop_signal_path = path.child("stopSignal")
        if pod.os_name is None:
            yield forbidden(stop_signal_path, "may not be set for containers with empty `spec.os.name`")
        else:
            supported = _SIGNALS.get(pod.os_name)
            if supported is not None and signal not in supported:
                yield not_supported(stop_signal_path, signal, supported)


def _validate_handler(handler: Json, actions: dict[str, _Action], path: Path, grace_period: int | None) -> Errors:
    has_handler = False
    for name, validate in actions.items():
        if (action := handler.get(name)) is None:
            continue
        if has_handler:
            yield forbidden(path.child(name), "may not specify more than 1 handler type")
        else:
            yield from validate(action, path.child(name), grace_period)
        has_handler = True
    if not has_handler:
        yield required(path, "must specify a handler type")


def _validate_exec(action: Json, path: Path, _: int | None) -> Errors:
    yield from non_empty(action.get("command"), path.child("command"))


def _validate_http_get(action: Json, path: Path, _: int | None) -> Errors:
    yield from non_empty(action.get("path"), path.child("path"))
    yield from port_num_or_name(action.get("port", 0), path.child("port"))
    yield from one_of(action.get("scheme") or "", path.child("scheme"), _SCHEMES)
    for header in action.get("httpHeaders") or ():
        for message in is_http_header_name(header.get("name") or ""):
            yield invalid(path.child("httpHeaders"), header.get("name") or "", message)


def _validate_port(action: Json, path: Path, _: int | None) -> Errors:
    yield from port_num_or_name(action.get("port", 0), path.child("port"))


def _validate_sleep(action: Json, path: Path, grace_period: int | None) -> Errors:
    seconds = action.get("seconds") or 0
    # A missing grace period is reported elsewhere.
    if grace_period is not None and not 0 <= seconds <= grace_period:
        reason = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
        yield invalid(path, seconds, reason)


_PROBE_ACTIONS: dict[str, _Action] = {
    "exec": _validate_exec,
    "httpGet": _validate_http_get,
    "tcpSocket": _validate_port,
    "grpc": _validate_port,
}


_HOOK_ACTIONS: dict[str, _Action] = {
    "exec": _validate_exec,
    "httpGet": _validate_http_get,
    "tcpSocket": _validate_port,
    "sleep": _validate_sleep,
}
