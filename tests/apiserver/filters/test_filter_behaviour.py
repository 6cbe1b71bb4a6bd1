"""Each filter on its own, around a handler that does what the test needs."""

from __future__ import annotations

import asyncio
import time

import orjson
import pytest
from filter_requests import MakeRequest, answer_ok, body_of, header
from filter_requests import make_request as build_request

from pilothouse.apiserver.audit.policy import AuditPolicy
from pilothouse.apiserver.authn.bearer import BearerAuthenticator
from pilothouse.apiserver.authn.tokens import StaticTokens
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.always import AlwaysAllow, AlwaysDeny, PrivilegedGroup
from pilothouse.apiserver.authz.union import UnionAuthorizer
from pilothouse.apiserver.filters.answer_headers import warning_headers, with_answer_headers
from pilothouse.apiserver.filters.audit import Auditing, with_audit
from pilothouse.apiserver.filters.authentication import with_authentication
from pilothouse.apiserver.filters.authorization import with_authorization
from pilothouse.apiserver.filters.cors import with_cors
from pilothouse.apiserver.filters.goaway import with_probabilistic_goaway
from pilothouse.apiserver.filters.max_in_flight import with_max_in_flight
from pilothouse.apiserver.filters.panic_recovery import with_panic_recovery
from pilothouse.apiserver.filters.recent_requests import RecentRequests, with_recent_requests
from pilothouse.apiserver.filters.retry_after import with_retry_after
from pilothouse.apiserver.filters.status_errors import with_status_errors
from pilothouse.apiserver.filters.timeout import with_timeout
from pilothouse.apiserver.filters.wait_group import WaitGroup, with_wait_group
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.streams import close_stream
from pilothouse.machinery.errors import BadRequest, Forbidden, NotFound, Unauthorized
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import ServiceUnavailable, TooManyRequests


@pytest.fixture
def make_request() -> MakeRequest:
    return build_request()


MASTER = User("root", groups=("system:masters",))


async def test_an_unexpected_error_is_answered_with_500_and_nothing_of_it_is_shown(make_request: MakeRequest) -> None:
    async def fail(request: Request) -> Response:
        raise RuntimeError("a secret")

    response = await with_panic_recovery(fail)(make_request())
    assert response.status == 500
    assert b"a secret" not in body_of(response)


async def test_a_recorded_request_holds_little_memory(make_request: MakeRequest) -> None:
    recent, long = RecentRequests(1), "x" * 500_000
    user = User(long, groups=tuple(f"{long}{number}" for number in range(20)))
    request = make_request(f"/{long}", headers={"User-Agent": long}, user=user)
    request.audit_id = long
    await with_recent_requests(recent)(answer_ok)(request)
    assert len(body_of(await recent.answer(request))) < 25_000


async def test_every_answer_carries_an_audit_id_and_the_clients_own_is_kept(make_request: MakeRequest) -> None:
    handler = with_answer_headers()(answer_ok)
    assert len(header(await handler(make_request()), "audit-id")[0]) == 36
    assert header(await handler(make_request(headers={"Audit-ID": "mine"})), "audit-id") == ["mine"]


async def test_no_answer_may_be_kept_by_caches(make_request: MakeRequest) -> None:
    response = await with_answer_headers()(answer_ok)(make_request())
    assert header(response, "cache-control") == ["no-cache, private"]


async def test_warnings_go_out_once_each_and_quoted(make_request: MakeRequest) -> None:
    async def warn(request: Request) -> Response:
        request.warnings += ['unknown field "a"', 'unknown field "a"', "second"]
        return Response(200)

    response = await with_answer_headers()(warn)(make_request())
    assert header(response, "warning") == ['299 - "unknown field \\"a\\""', '299 - "second"']


def test_many_long_warnings_are_cut_and_then_dropped() -> None:
    headers = warning_headers([f"{i}{'x' * 3000}" for i in range(100)])
    assert all(len(text) < 280 for text in headers)
    assert len(headers) == 16
    assert len(list(warning_headers([f"{i:03}{'x' * 197}" for i in range(60)]))) == 21


def test_a_warning_with_control_characters_is_omitted() -> None:
    assert warning_headers(["a\x00b", "", "c\x85", "déjà\u200b vu"]) == ['299 - "déjà\u200b vu"']
    long = ["x" * 3000, "y" * 3000, "z" * 300 + "\n"]
    assert [len(text) for text in warning_headers(long)] == [256 + len('299 - ""')] * 3, "cut before the line break"


async def test_a_status_error_is_written_in_the_media_type_the_client_accepts(make_request: MakeRequest) -> None:
    async def missing(request: Request) -> Response:
        raise NotFound.of(GroupResource("", "configmaps"), "a")

    response = await with_status_errors(missing)(make_request())
    assert response.status == 404
    assert orjson.loads(body_of(response))["message"] == 'configmaps "a" not found'
    yaml = await with_status_errors(missing)(make_request(headers={"Accept": "application/yaml"}))
    assert b"message: configmaps" in body_of(yaml)
    unknown = await with_status_errors(missing)(make_request(headers={"Accept": "text/plain"}))
    assert header(unknown, "content-type") == ["application/json"]


async def test_an_error_that_says_when_to_come_again_sets_retry_after(make_request: MakeRequest) -> None:
    async def busy(request: Request) -> Response:
        raise TooManyRequests.of("later", 7)

    assert header(await with_status_errors(busy)(make_request()), "retry-after") == ["7"]


async def test_a_request_that_takes_too_long_is_answered_with_504(make_request: MakeRequest) -> None:
    async def never(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    late = await with_timeout(0.01)(never)(make_request())
    assert (late.status, header(late, "content-type")) == (504, ["text/plain; charset=utf-8"])
    asked = await with_timeout(60)(never)(make_request(query="timeout=10ms"))
    assert body_of(asked) == (
        b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
        b'"reason":"Timeout","details":{},"code":504}\n'
    )


async def test_a_request_knows_by_when_it_must_be_answered(make_request: MakeRequest) -> None:
    seen: list[float] = []

    async def look(request: Request) -> Response:
        seen.append(request.deadline - time.monotonic())
        return Response(200, b"")

    for query in ("", "timeout=10s", "timeout=90s"):
        await with_timeout(60)(look)(make_request(query=query))
    assert all(limit - 9 < left <= limit for limit, left in zip([60, 10, 60], seen, strict=True)), seen


async def test_hsts_directives_are_in_every_answer(make_request: MakeRequest) -> None:
    answer = await with_answer_headers(["max-age=31536000", "includeSubDomains"])(answer_ok)(make_request())
    assert header(answer, "strict-transport-security") == ["max-age=31536000; includeSubDomains"]
    assert header(await with_answer_headers()(answer_ok)(make_request()), "strict-transport-security") == []


@pytest.mark.parametrize(
    ("asked", "why"), [("x", 'time: invalid duration "x"'), ("5", 'time: missing unit in duration "5"')]
)
async def test_a_timeout_that_is_no_duration_is_refused(make_request: MakeRequest, asked: str, why: str) -> None:
    with pytest.raises(BadRequest) as refused:
        await with_timeout(60)(answer_ok)(make_request(query=f"timeout={asked}"))
    assert refused.value.message == f"invalid timeout specified in the request URL - {why}"
    watch = make_request("/api/v1/configmaps", query=f"watch=1&timeout={asked}")
    assert (await with_timeout(60)(answer_ok)(watch)).status == 200


async def test_a_watch_has_no_request_timeout(make_request: MakeRequest) -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(0.02)
        return Response(200)

    request = make_request("/api/v1/configmaps", query="watch=1")
    assert (await with_timeout(0.001)(slow)(request)).status == 200


async def test_by_chance_a_client_that_speaks_http2_is_sent_away(make_request: MakeRequest) -> None:
    (always,), (never,) = with_probabilistic_goaway(1.0), with_probabilistic_goaway(1e-300)
    request = make_request()
    assert header(await always(answer_ok)(request), "connection") == []
    request.http_version = "2"
    assert header(await always(answer_ok)(request), "connection") == ["close"]
    assert header(await never(answer_ok)(request), "connection") == []
    assert with_probabilistic_goaway(0.0) == []


async def test_a_closed_wait_group_turns_requests_away_and_lets_those_under_way_finish(
    make_request: MakeRequest,
) -> None:
    group, entered, leave = WaitGroup(), asyncio.Event(), asyncio.Event()

    async def hold(request: Request) -> Response:
        entered.set()
        await leave.wait()
        return Response(200)

    handler = with_wait_group(group)(hold)
    under_way = asyncio.ensure_future(handler(make_request()))
    await entered.wait()
    group.close()
    assert not await group.wait(timeout=0.01)
    for late in (make_request(), make_request("/api/v1/configmaps", query="watch=1")):
        with pytest.raises(ServiceUnavailable):
            await handler(late)
    leave.set()
    assert await group.wait(timeout=1)
    assert (await under_way).status == 200


async def test_requests_beyond_the_limit_get_429_but_never_the_masters(make_request: MakeRequest) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def hold(request: Request) -> Response:
        entered.set()
        if request.user is not MASTER:
            await leave.wait()
        return Response(200)

    handler = with_max_in_flight(1, 1)(hold)
    first = asyncio.ensure_future(handler(make_request()))
    await entered.wait()
    with pytest.raises(TooManyRequests) as refused:
        await handler(make_request())
    assert refused.value.retry_after_seconds == 1
    assert (await handler(make_request(user=MASTER))).status == 200
    leave.set()
    await first
    assert (await handler(make_request())).status == 200


async def test_writes_and_reads_have_limits_of_their_own(make_request: MakeRequest) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def hold(request: Request) -> Response:
        if request.method == "POST":
            entered.set()
            await leave.wait()
        return Response(200)

    handler = with_max_in_flight(1, 1)(hold)
    write = asyncio.ensure_future(handler(make_request("/api/v1/namespaces/ns/configmaps", method="POST")))
    await entered.wait()
    assert (await handler(make_request())).status == 200
    leave.set()
    await write


async def test_only_allowed_origins_are_shared_with(make_request: MakeRequest) -> None:
    handler = with_cors([r"//example\.com$"])(answer_ok)
    allowed = await handler(make_request(headers={"Origin": "https://example.com"}))
    assert header(allowed, "access-control-allow-origin") == ["https://example.com"]
    other = await handler(make_request(headers={"Origin": "https://evil.test"}))
    assert header(other, "access-control-allow-origin") == []
    preflight = await handler(make_request(method="OPTIONS", headers={"Origin": "https://example.com"}))
    assert preflight.status == 204


async def test_a_known_token_names_its_user_and_an_unknown_one_is_refused(make_request: MakeRequest) -> None:
    authenticator = BearerAuthenticator(StaticTokens({"t": User("bob")}))

    async def who(request: Request) -> Response:
        return Response(200, request.user.name.encode())

    handler = with_authentication(authenticator, anonymous=True)(who)
    assert body_of(await handler(make_request(headers={"Authorization": "Bearer t"}))) == b"bob"
    assert body_of(await handler(make_request())) == b"system:anonymous"
    with pytest.raises(Unauthorized):
        await handler(make_request(headers={"Authorization": "Bearer wrong"}))


async def test_credentials_of_a_kind_that_nobody_reads_are_no_credentials(make_request: MakeRequest) -> None:
    async def who(request: Request) -> Response:
        return Response(200, request.user.name.encode())

    handler = with_authentication(BearerAuthenticator(StaticTokens({})), anonymous=True)(who)
    assert body_of(await handler(make_request(headers={"Authorization": "Basic YTpi"}))) == b"system:anonymous"


async def test_without_anonymous_access_a_request_needs_credentials(make_request: MakeRequest) -> None:
    with pytest.raises(Unauthorized):
        await with_authentication(BearerAuthenticator(StaticTokens({})))(answer_ok)(make_request())


async def test_a_refusal_says_who_may_not_do_what_and_where(make_request: MakeRequest) -> None:
    handler = with_authorization(AlwaysDeny())(answer_ok)
    with pytest.raises(Forbidden) as refused:
        await handler(make_request())
    assert refused.value.message == (
        'configmaps "a" is forbidden: User "alice" cannot get resource "configmaps" in API group "" '
        'in the namespace "ns": Everything is forbidden.'
    )
    with pytest.raises(Forbidden) as refused:
        await handler(make_request("/healthz"))
    assert refused.value.message == 'forbidden: User "alice" cannot get path "/healthz": Everything is forbidden.'


async def test_masters_are_allowed_before_any_other_authorizer_is_asked(make_request: MakeRequest) -> None:
    handler = with_authorization(UnionAuthorizer([PrivilegedGroup(), AlwaysDeny()]))(answer_ok)
    assert (await handler(make_request(user=MASTER))).status == 200
    with pytest.raises(Forbidden):
        await handler(make_request())
    allow = with_authorization(UnionAuthorizer([PrivilegedGroup(), AlwaysAllow()]))(answer_ok)
    assert (await allow(make_request())).status == 200


async def test_a_terminating_server_turns_requests_away_but_still_tells_its_health(make_request: MakeRequest) -> None:
    terminating = False
    handler = with_retry_after(lambda: terminating)(answer_ok)
    assert (await handler(make_request())).status == 200
    terminating = True
    refused = await handler(make_request())
    assert (refused.status, header(refused, "retry-after")) == (429, ["5"])
    assert (await handler(make_request("/readyz"))).status == 200


class _Kept(list[Json]):
    async def process(self, event: Json) -> bool:
        self.append(dict(event))
        return True


class _Endless:
    """A stream that is no generator, as other filters make them."""

    closed = False

    def __aiter__(self) -> _Endless:
        return self

    async def __anext__(self) -> bytes:
        return b"more"

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize("read", [0, 2])
async def test_an_audited_stream_that_is_given_up_is_closed_and_logged_as_complete(
    make_request: MakeRequest, read: int
) -> None:
    stream, events = _Endless(), _Kept()

    async def answer(request: Request) -> Response:
        return Response(200, stream)

    auditing = Auditing(AuditPolicy({"rules": [{"level": "Metadata"}]}), events)
    body = (await with_audit(auditing)(answer)(make_request())).body
    assert not isinstance(body, bytes)
    for _ in range(read):
        assert await anext(body) == b"more"
    assert [event["stage"] for event in events] == ["RequestReceived"]
    await close_stream(body)
    assert [event["stage"] for event in events] == ["RequestReceived", "ResponseComplete"]
    assert stream.closed
