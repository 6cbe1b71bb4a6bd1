"""Probes, lifecycle hooks and the signal that stops a container."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pilothouse.kube.validation.fields import non_empty, nonnegative, one_of, port_num_or_name
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_http_header_name

if TYPE_CHECKING:
    from pilothouse.kube.core.pods.validation.container import PodContext


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
    """`kind` is the field's name, since each kind of probe has a rule of its own."""
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
        yield from _validate_stop_signal(signal, path.child("stopSignal"), pod.os_name)


def _validate_handler(handler: Json, actions: dict[str, _Action], path: Path, grace_period: int | None) -> Errors:
    found = False
    for name, validate in actions.items():
        if (action := handler.get(name)) is None:
            continue
        if found:
            yield forbidden(path.child(name), "may not specify more than 1 handler type")
        else:
            yield from validate(action, path.child(name), grace_period)
        found = True
    if not found:
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
    # Without a grace period something else is wrong, and is reported where it is.
    if grace_period is not None and not 0 <= seconds <= grace_period:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
        yield invalid(path, seconds, why)


def _validate_stop_signal(signal: str, path: Path, os_name: str | None) -> Errors:
    if os_name is None:
        yield forbidden(path, "may not be set for containers with empty `spec.os.name`")
        return
    supported = _SIGNALS.get(os_name)
    if supported is not None and signal not in supported:
        yield not_supported(path, signal, supported)


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
