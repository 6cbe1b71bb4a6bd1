"""What hostile clients do to a server, one attack a row: for the test that nobody can freeze it, and for the benchmark.

    for attack in attacks(): attack.play(victim)      returns when the server has answered all of it

A row of another kind is a name and a function of the victim: `yield Attack("a flood of pings", flood_of_pings)`.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import hostile_http1
import hostile_http2
from fuzz_corpus import ATTACKS as FUZZERS_BODIES
from fuzz_corpus import PROTOBUF
from hostile_bodies import APPLY, BODIES, CONFIG_MAPS, JSON, REVIEWS, YAML, HostileBody
from hostile_heads import HEADS
from hostile_requests import (
    LONG,
    HostileRequest,
    long_headers,
    long_paths,
    long_selectors,
    paths_of_many_segments,
    play,
)
from huge_numbers import HUGE_NUMBERS
from patience import PATIENCE

MERGE = "application/merge-patch+json"
_LABEL = b'{"metadata":{"labels":{"a":"b"}}}'
_RELEASE = b'{"metadata":{"finalizers":null}}'
_READ = ("ConfigMap", "NetworkPolicy")


@dataclass(frozen=True)
class Victim:
    """A server, and two users: `admin_token` is of one who may do everything, `token` of one without any role."""

    host: str
    port: int
    ca_file: str
    admin_token: str
    token: str

    def tls(self, *protocols: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file)
        context.set_alpn_protocols(list(protocols))
        return context

    def call(
        self, method: str, path: str, body: bytes = b"", *, media_type: str = JSON, accept: str = JSON, token: str
    ) -> int:
        """The status of the answer, which is read to its end."""
        connection = http.client.HTTPSConnection(self.host, self.port, context=self.tls("http/1.1"), timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": media_type, "Accept": accept}
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        return answer.status


@dataclass(frozen=True)
class Attack:
    name: str
    play: Callable[[Victim], object]
    size: Callable[[], int] = lambda: 0
    """How many bytes it sends, which are not made before somebody wants them; 0 where that is not the point."""


def attacks() -> Iterator[Attack]:
    """All of them."""
    yield from attacks_by_body()
    yield from attacks_by_head()
    yield from attacks_by_connection()
    yield from attacks_by_number()


def attacks_by_body() -> Iterator[Attack]:
    for name, body in BODIES.items():
        yield from _by_body(name, body)
    yield from _by_fuzzer()


def attacks_by_head() -> Iterator[Attack]:
    """Ten requests of each, over several connections."""
    for name, make in HEADS.items():
        yield Attack(f"head: {name}", partial(_send_heads, make=make), lambda: 10 * LONG)


def attacks_by_connection() -> Iterator[Attack]:
    """Floods of frames, large heads, and long paths, selectors and headers."""
    for name, flood in hostile_http2.FLOODS.items():
        yield Attack(f"HTTP/2: {name}", partial(_flood, flood=flood), partial(_size, flood.flood))
    for name, large in hostile_http1.REQUESTS.items():
        yield Attack(f"HTTP/1.1: {name}", partial(_ask, large=large), partial(_size, large.request))
    for make in (long_paths, paths_of_many_segments, long_selectors, long_headers):
        name = make.__name__.replace("_", " ")
        yield Attack(f"50 {name}", partial(_request, make=make), lambda: 50 * LONG)


def attacks_by_number() -> Iterator[Attack]:
    """Small bodies with huge numbers. They are for servers with a simulated node."""
    for row in HUGE_NUMBERS:
        yield Attack(f"number: {row.name}", row.play)


def _size(make: Callable[[], bytes]) -> int:
    return len(make())


def _flood(victim: Victim, *, flood: hostile_http2.Flood) -> None:
    asyncio.run(hostile_http2.play(flood, victim.host, victim.port, victim.tls("h2")))


def _ask(victim: Victim, *, large: hostile_http1.LargeRequest) -> None:
    asyncio.run(hostile_http1.play_http1(large, victim.host, victim.port, victim.tls("http/1.1")))


def _send_heads(victim: Victim, *, make: Callable[[str], HostileRequest]) -> None:
    requests = [make(victim.admin_token)] * 10
    answers = asyncio.run(play(requests, port=victim.port, tls=victim.tls("http/1.1")))
    assert answers[0] == 0, "the server hung up"


def _request(victim: Victim, *, make: Callable[[int], Iterator[HostileRequest]]) -> None:
    asyncio.run(play(make(50), port=victim.port, tls=victim.tls("http/1.1")))


def _by_body(name: str, body: HostileBody) -> Iterator[Attack]:
    """Bodies that are refused are one attack. Those that are stored are several, because each verb works on them; what
    becomes of them in other media types does not depend on the kind, and is tried on two."""
    yield Attack(f"{name}, sent", partial(_send, body=body), lambda: len(body.text))
    if body.resource == REVIEWS:
        return
    item = f"{body.resource}/hostile"
    if name in _READ:
        yield Attack(f"{name}, read as YAML", _as_admin("GET", item, accept=YAML))
        yield Attack(f"{name}, read as protobuf", _as_admin("GET", item, accept=PROTOBUF))
    yield Attack(f"{name}, labelled", _as_admin("PATCH", item, _LABEL, media_type=MERGE), _LABEL.__len__)
    if "finalizers" in name:
        yield Attack(f"{name}, released", _as_admin("PATCH", item, _RELEASE, media_type=MERGE), _RELEASE.__len__)
    yield Attack(f"{name}, deleted", _as_admin("DELETE", f"{item}?gracePeriodSeconds=0"))


def _send(victim: Victim, *, body: HostileBody) -> None:
    if body.media_type == APPLY:
        path = f"{body.resource}/hostile?fieldManager=hostile&force=true"
        victim.call("PATCH", path, body.text, media_type=APPLY, token=victim.admin_token)
        return
    token = victim.token if body.resource == REVIEWS else victim.admin_token
    victim.call("POST", f"{body.resource}?fieldValidation=Strict", body.text, media_type=body.media_type, token=token)


def _as_admin(
    method: str, path: str, body: bytes = b"", *, media_type: str = JSON, accept: str = JSON
) -> Callable[[Victim], int]:
    return lambda victim: victim.call(
        method, path, body, media_type=media_type, accept=accept, token=victim.admin_token
    )


def _by_fuzzer() -> Iterator[Attack]:
    """What tests/fuzz sends to servers without a socket."""
    for name, (body, media_type) in FUZZERS_BODIES.items():
        play = _as_admin("POST", f"{CONFIG_MAPS}?dryRun=All", body, media_type=media_type)
        yield Attack(f"fuzzer: {name}", play, body.__len__)
