"""The handler chain, outermost first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import reduce
from typing import Protocol

from pilothouse.apiserver.authn.interface import Authenticator
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaders
from pilothouse.apiserver.authn.tokens import INSECURE_SUPERUSER, AlwaysUser, loopback_user
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.filters.answer_headers import with_answer_headers
from pilothouse.apiserver.filters.audit import Auditing, with_audit, with_failed_authentication_audit
from pilothouse.apiserver.filters.authentication import with_authentication
from pilothouse.apiserver.filters.authorization import with_authorization
from pilothouse.apiserver.filters.cors import with_cors
from pilothouse.apiserver.filters.feature_gates import with_feature_gates
from pilothouse.apiserver.filters.goaway import with_probabilistic_goaway
from pilothouse.apiserver.filters.impersonation import with_impersonation
from pilothouse.apiserver.filters.loopback_names import with_loopback_names
from pilothouse.apiserver.filters.max_in_flight import with_max_in_flight
from pilothouse.apiserver.filters.panic_recovery import with_panic_recovery
from pilothouse.apiserver.filters.priority_and_fairness import FlowControl, with_priority_and_fairness
from pilothouse.apiserver.filters.recent_requests import RecentRequests, with_recent_requests
from pilothouse.apiserver.filters.request_info import with_request_info
from pilothouse.apiserver.filters.request_metrics import with_request_metrics
from pilothouse.apiserver.filters.retry_after import with_retry_after
from pilothouse.apiserver.filters.status_errors import with_status_errors
from pilothouse.apiserver.filters.timeout import with_timeout
from pilothouse.apiserver.filters.tracing import (
    with_authentication_span,
    with_filter_span,
    with_own_tracing,
    with_tracing,
)
from pilothouse.apiserver.filters.wait_group import WaitGroup, with_wait_group
from pilothouse.apiserver.http import Filter, Handler
from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.apiserver.tracing.trace_context import Tracer
from pilothouse.machinery.dataclass import dataclass


class TestBench(Protocol):
    """Fault injection for tests."""

    def around(self, handler: Handler) -> Handler:
        """Wrap all other filters."""

    def filter(self, own: bool) -> Filter:
        """Return the filter after authentication; `own` is for the server's own requests."""


@dataclass(frozen=True)
class ChainConfig:
    """The dependencies of the filters.

    >>> from pilothouse.apiserver import AlwaysAllow, ChainConfig, UnionAuthenticator
    >>> chain = ChainConfig(UnionAuthenticator([]), AlwaysAllow(), anonymous=False)
    >>> await chain.in_flight.wait(5)
    True
    """

    authenticator: Authenticator
    authorizer: Authorizer
    anonymous: bool = True
    anonymous_paths: frozenset[str] = frozenset()
    """Paths for anonymous users; empty means all paths."""
    run_options: ServerRunOptions = field(default_factory=ServerRunOptions)
    features: FeatureGates = field(default_factory=FeatureGates)
    in_flight: WaitGroup = field(default_factory=WaitGroup)
    front_proxy: tuple[RequestHeaders, ...] = (STANDARD,)
    """The headers in which front proxies name users."""
    auditing: Auditing | None = None
    flow_control: FlowControl | None = None
    bench: TestBench | None = None
    """Fault injection with --testing."""
    is_terminating: Callable[[], bool] = lambda: False
    """Whether new requests get 429: --shutdown-send-retry-after."""
    recent: RecentRequests | None = None
    """Recorder of recent requests."""
    tracer: Tracer | None = None
    """Recorder of traces, with --tracing-config-file."""


def handler_chain(api: Handler, config: ChainConfig) -> Handler:
    """Return the handler chain of the secure port (upstream's DefaultBuildHandlerChain).

    >>> from pilothouse.apiserver import AlwaysAllow, ChainConfig, Response, UnionAuthenticator, handler_chain
    >>> async def hello(request):
    ...     return Response(200, f"hello {request.user.name}".encode())
    >>> handler = handler_chain(hello, ChainConfig(UnionAuthenticator([]), AlwaysAllow()))
    """
    filters: list[Filter] = [
        with_recent_requests(config.recent),
        *with_probabilistic_goaway(config.run_options.goaway_chance),
        *_before_authentication(config),
        *with_authentication_span(config.tracer),
        with_failed_authentication_audit(config.auditing),
        with_authentication(
            config.authenticator,
            anonymous=config.anonymous,
            anonymous_paths=config.anonymous_paths,
            front_proxy=config.front_proxy,
        ),
        with_tracing(config.tracer),
        *with_filter_span(config.tracer, "audit"),
        with_audit(config.auditing),
        *with_filter_span(
            config.tracer,
            "constrainedimpersonation" if config.features.enabled("ConstrainedImpersonation") else "impersonation",
        ),
        with_impersonation(config.authorizer),
        *_bench(config),
        *_limited(config),
        *with_filter_span(config.tracer, "authorization"),
        with_authorization(config.authorizer),
    ]
    return fold(filters, api)


def _bench(config: ChainConfig, *, own: bool = False) -> list[Filter]:
    """Return the filters of the test bench. They run after authentication and before all decisions."""
    return [] if config.bench is None else [config.bench.filter(own)]


def _limited(config: ChainConfig) -> list[Filter]:
    """Return priority and fairness, or max-in-flight limits if it is disabled."""
    if config.flow_control is not None:
        fairness = with_priority_and_fairness(config.flow_control)
        return [*with_filter_span(config.tracer, "priorityandfairness"), fairness]
    return [_counted(config)]


def _counted(config: ChainConfig) -> Filter:
    limits = config.run_options
    return with_max_in_flight(limits.max_requests_inflight, limits.max_mutating_requests_inflight)


def insecure_handler_chain(api: Handler, config: ChainConfig) -> Handler:
    """Return the handler chain of the insecure port (upstream's BuildInsecureHandlerChain): every local user is the
    superuser, without authorization."""
    filters: list[Filter] = [
        *_before_authentication(config),
        with_loopback_names(config.run_options.cors_allowed_origins),
        with_authentication(AlwaysUser(INSECURE_SUPERUSER)),
        with_tracing(config.tracer),
        with_audit(config.auditing),
        *_bench(config),
        _counted(config),
    ]
    return fold(filters, api)


def loopback_handler_chain(api: Handler, config: ChainConfig, user: User | None = None) -> Handler:
    """Return the handler chain of the server's own requests, which bypass all queues.

    The user is system:apiserver with all rights, or `user` with its own rights.
    """
    filters: list[Filter] = [
        *_before_authentication(config),
        with_authentication(AlwaysUser(user or loopback_user())),
        *with_own_tracing(config.tracer),
        with_audit(config.auditing),
        *_bench(config, own=True),
    ]
    if user is not None:
        filters.append(with_authorization(config.authorizer))
    return fold(filters, api)


def _before_authentication(config: ChainConfig) -> list[Filter]:
    """Return the filters before authentication."""
    return [
        *([] if config.bench is None else [config.bench.around]),
        with_panic_recovery,
        with_feature_gates(config.features),
        with_answer_headers(config.run_options.strict_transport_security_directives),
        with_status_errors,
        with_request_info,
        with_retry_after(config.is_terminating),
        with_request_metrics,
        with_wait_group(config.in_flight),
        with_timeout(config.run_options.request_timeout),
        with_cors(config.run_options.cors_allowed_origins),
    ]


def fold(filters: Sequence[Filter], api: Handler) -> Handler:
    return reduce(lambda handler, wrap: wrap(handler), reversed(filters), api)
