"""ServerRunOptions: limits, timeouts and shutdown settings. Each setting is declared once, with its flag and default.

The frozen object is passed on whole (GenericConfig, ChainConfig, RequestScope, RunConfig, ProxyConfig), so a new flag
is a field here and a line at its use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, DURATION, FLOAT, INT, IP, STRING, STRINGS, flag

_HSTS_VALUES = (
    "allowed values: max-age=expireTime, includeSubDomains, preload. "
    "see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
)
_CORS_HELP = "Origins that browsers may call from: regular expressions that pin both ends of the host."


@dataclass(frozen=True)
class ServerRunOptions:
    """The options of every generic API server.

    >>> from pilothouse.apiserver import ServerRunOptions
    >>> ServerRunOptions(max_requests_inflight=10).max_mutating_requests_inflight
    200
    """

    title: ClassVar[str] = "generic"

    advertise_address: str = flag(
        "advertise-address",
        IP,
        "",
        "The address at which clients reach this server; --bind-address, or the host's own, if empty.",
    )
    cors_allowed_origins: tuple[str, ...] = flag("cors-allowed-origins", STRINGS, (), _CORS_HELP)
    delete_collection_workers: int = flag(
        "delete-collection-workers", INT, 1, "How many objects of a collection are deleted at once."
    )
    enable_garbage_collector: bool = flag(
        "enable-garbage-collector",
        BOOL,
        True,
        "Let deletes orphan dependents or wait for them, and run the controller that sees to it.",
    )
    external_hostname: str = flag(
        "external-hostname", STRING, "", "The host name to use in URLs that leave this server."
    )
    goaway_chance: float = flag(
        "goaway-chance",
        FLOAT,
        0.0,
        "How likely an HTTP/2 request makes its client reconnect, to spread load: 0 to 0.02.",
    )
    livez_grace_period: float = flag(
        "livez-grace-period", DURATION, 0.0, "For how long unfinished post-start hooks do not make /livez fail."
    )
    max_requests_inflight: int = flag(
        "max-requests-inflight", INT, 400, "How many reads may run at once. 0 for no limit."
    )
    max_mutating_requests_inflight: int = flag(
        "max-mutating-requests-inflight", INT, 200, "How many writes may run at once. 0 for no limit."
    )
    enable_priority_and_fairness: bool = flag(
        "enable-priority-and-fairness",
        BOOL,
        True,
        "Let requests take turns as FlowSchemas and PriorityLevelConfigurations say, within the sum of both limits.",
    )
    min_request_timeout: int = flag(
        "min-request-timeout",
        INT,
        1800,
        "Seconds for which a watch stays open at least; the real time is random above it.",
    )
    profiling: bool = flag(
        "profiling", BOOL, True, "Serve profiles at /debug/pprof/, and let /debug/flags/v change how much is logged."
    )
    request_timeout: float = flag(
        "request-timeout", DURATION, 60.0, "How long a request may take, unless it is long-running."
    )
    shutdown_delay_duration: float = flag(
        "shutdown-delay-duration",
        DURATION,
        0.0,
        "How long to go on serving, with /readyz failing, once a shutdown has begun.",
    )
    shutdown_send_retry_after: bool = flag(
        "shutdown-send-retry-after",
        BOOL,
        False,
        "Go on listening while requests end, and answer new ones with 429 and Retry-After.",
    )
    strict_transport_security_directives: tuple[str, ...] = flag(
        "strict-transport-security-directives",
        STRINGS,
        (),
        "What browsers are told of HSTS, comma separated: 'max-age=31536000,includeSubDomains,preload'.",
    )
    storage_initialization_timeout: float = flag(
        "storage-initialization-timeout", DURATION, 60.0, "How long to wait for etcd at start before giving up."
    )

    def validate(self) -> Iterator[str]:
        numbers = {
            "--livez-grace-period": self.livez_grace_period,
            "--max-requests-inflight": self.max_requests_inflight,
            "--max-mutating-requests-inflight": self.max_mutating_requests_inflight,
            "--request-timeout": self.request_timeout,
            "--min-request-timeout": self.min_request_timeout,
            "--storage-initialization-timeout": self.storage_initialization_timeout,
            "--shutdown-delay-duration": self.shutdown_delay_duration,
        }
        for name, value in numbers.items():
            if value < 0:
                yield f"{name} can not be negative value"
        if self.goaway_chance < 0 or self.goaway_chance > 0.02:
            yield "--goaway-chance can not be less than 0 or greater than 0.02"
        for directive in self.strict_transport_security_directives:
            if not directive.strip():
                yield "empty value in strict-transport-security-directives"
            elif directive not in ("includeSubDomains", "preload") and not re.fullmatch("max-age=[^=]*", directive):
                yield f"--strict-transport-security-directives invalid, {_HSTS_VALUES}"
        for origin in self.cors_allowed_origins:
            yield from _validate_origin(origin)


def _validate_origin(origin: str) -> Iterator[str]:
    if not origin:
        yield f"empty value in --cors-allowed-origins, help: {_CORS_HELP}"
        return
    from pilothouse.machinery.cel.patterns import refusal

    problem = refusal(origin)
    # An unanchored expression would also match https://example.com.evil.org.
    if not any(mark in origin for mark in ("^", "//")) or not any(mark in origin for mark in ("$", ":")):
        problem = problem or "regular expression does not pin to start/end of host in the origin header"
    if problem:
        yield f"--cors-allowed-origins has an invalid regular expression: {problem}, help: {_CORS_HELP}"
