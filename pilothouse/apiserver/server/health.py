"""Health: /healthz, /livez and /readyz, each with one subpath per check, in upstream's format.

A check is a coroutine function that raises if its subject is unhealthy. The root paths list failed checks without
reasons. The reason is in the log and at the path of the check.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge

from pilothouse.apiserver.http import Handler, Request, Response, text
from pilothouse.apiserver.logs import v
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

log = logging.getLogger(__name__)

Probe: TypeAlias = Callable[[], Awaitable[None]]

HEALTHZ, LIVEZ, READYZ = ENDPOINTS = ("healthz", "livez", "readyz")


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One check of /healthz, /livez and /readyz. The probe raises Unhealthy.

    `group` is a second name for excluding the check. A check of the boot sequence may fail during the grace period
    without making the server not live.

    >>> from pilothouse.apiserver import HealthCheck, Unhealthy
    >>> async def has_room() -> None:
    ...     raise Unhealthy("the disk is full")
    >>> HealthCheck("disk", has_room, endpoints=("readyz",)).name
    'disk'
    """

    name: str
    probe: Probe
    group: str = ""
    endpoints: tuple[str, ...] = ENDPOINTS
    boot_sequence: bool = False


def install_health(mux: PathRecorderMux, checks: list[HealthCheck], *, grace: float, ready: Callable[[], None]) -> None:
    """Register the three endpoints. `ready` is called whenever /readyz passes."""
    alive_by = time.monotonic() + grace
    for endpoint in ENDPOINTS:
        mine = [check for check in checks if endpoint in check.endpoints]
        if endpoint == LIVEZ and grace > 0:
            mine = [delayed(check, alive_by) if check.boot_sequence else check for check in mine]
        mux.handle(f"/{endpoint}", root_health(endpoint, mine, ready if endpoint == READYZ else _ignore))
        for check in mine:
            mux.handle(f"/{endpoint}/{check.name}", single_check(check))


def delayed(check: HealthCheck, until: float, clock: Callable[[], float] = time.monotonic) -> HealthCheck:
    """Return a check that passes until a moment of the monotonic clock, and then calls `check`."""

    async def probe() -> None:
        if clock() > until:
            await check.probe()

    return replace(check, probe=probe)


def root_health(endpoint: str, checks: list[HealthCheck], passed: Callable[[], None]) -> Handler:
    async def answer(request: Request) -> Response:
        report = await run_checks(endpoint, checks, request.query.get("exclude", ()))
        if report.failures:
            reasons = "".join(f"[-]{name} failed: {reason}\n" for name, reason in report.failures.items())
            log.log(v(2), "%s check failed: %s\n%s", ",".join(report.failures), endpoint, reasons)
            return plain(500, f"{report.text}{endpoint} check failed\n")
        passed()
        return plain(200, f"{report.text}{endpoint} check passed\n" if "verbose" in request.query else "ok")

    return answer


@dataclass(frozen=True, slots=True)
class HealthReport:
    text: str
    """One line per check."""
    failures: dict[str, str]
    """failed check -> reason"""


async def run_checks(endpoint: str, checks: list[HealthCheck], exclude: Iterable[str]) -> HealthReport:
    excluded = set(exclude)
    unused = set(excluded)
    lines: list[str] = []
    failures: dict[str, str] = {}
    for check in checks:
        if check.name in excluded:
            unused.discard(check.name)
            lines.append(f"[+]{check.name} excluded: ok\n")
        elif check.group in excluded:
            unused.discard(check.group)
            lines.append(f"[+]{check.name} excluded with {check.group}: ok\n")
        else:
            lines.append(await _run(endpoint, check, failures))
    if unused:
        names = ",".join(map(quote, sorted(unused)))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
    return HealthReport("".join(lines), failures)


async def _run(endpoint: str, check: HealthCheck, failures: dict[str, str]) -> str:
    try:
        await check.probe()
    except Exception as error:
        failures[check.name] = str(error) or type(error).__name__
        observe_health_check(check.name, endpoint, passed=False)
        return f"[-]{check.name} failed: reason withheld\n"
    observe_health_check(check.name, endpoint, passed=True)
    return f"[+]{check.name} ok\n"


def single_check(check: HealthCheck) -> Handler:
    async def answer(request: Request) -> Response:
        try:
            await check.probe()
        except Exception as error:
            return plain(500, f"internal server error: {error}\n")
        return text(200, "ok")

    return answer


def plain(status: int, body: str) -> Response:
    return text(status, body, x_content_type_options="nosniff")


def _ignore() -> None: ...


SLI_REGISTRY = CollectorRegistry()

_LAST = Gauge(
    "kubernetes_healthcheck",
    "[STABLE] This metric records the result of a single healthcheck.",
    ["name", "type"],
    registry=SLI_REGISTRY,
)
_RUNS = Counter(
    "kubernetes_healthchecks",
    "[STABLE] This metric records the results of all healthcheck.",
    ["name", "type", "status"],
    registry=SLI_REGISTRY,
)


def observe_health_check(name: str, endpoint: str, *, passed: bool) -> None:
    """Record the result of a check for /metrics/slis."""
    _LAST.labels(name, endpoint).set(1 if passed else 0)
    _RUNS.labels(name, endpoint, "success" if passed else "error").inc()


def forget_health_checks() -> None:
    """Reset the results of checks for /metrics/slis."""
    _LAST.clear()
    _RUNS.clear()
