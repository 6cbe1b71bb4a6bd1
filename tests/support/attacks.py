"""What hostile clients do to a server, one attack a row: for the test that nobody can freeze it, and for the benchmark.

    for attack in attacks(): attack.play(victim)      returns when the server has answered all of it

A row of another kind is a name and a function of the victim: `yield Attack("a flood of pings", flood_of_pings)`.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from fuzz_corpus import ATTACKS as FUZZERS_BODIES
from fuzz_corpus import PROTOBUF
from hostile_bodies import APPLY, BODIES, CONFIG_MAPS, JSON, REVIEWS, YAML, HostileBody

MERGE = "application/merge-patch+json"
_LABEL = b'{"metadata":{"labels":{"a":"b"}}}'
_NO_FINALIZERS = b'{"metadata":{"finalizers":null}}'


@dataclass(frozen=True)
class Victim:
    """A server, and two users: `admin_token` is of one who may do everything, `token` of one without any role."""

    host: str
    port: int
    ca_file: str
    admin_token: str
    token: str

    def call(
        self, method: str, path: str, body: bytes = b"", *, media_type: str = JSON, accept: str = JSON, token: str
    ) -> int:
        """The status of the answer, which is read to its end."""
        context = ssl.create_default_context(cafile=self.ca_file)
        connection = http.client.HTTPSConnection(self.host, self.port, context=context, timeout=300)
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
    for name, body in BODIES.items():
        yield from _by_body(name, body)
    yield from _by_fuzzer()


def _by_body(name: str, body: HostileBody) -> Iterator[Attack]:
    """Bodies that are refused are one attack. Those that are stored are several, because each verb works on them."""
    yield Attack(f"{name}, sent", partial(_send, body=body), lambda: len(body.text))
    if body.resource == REVIEWS:
        return
    item = f"{body.resource}/hostile"
    yield Attack(f"{name}, read as YAML", _as_admin("GET", item, accept=YAML))
    yield Attack(f"{name}, read as protobuf", _as_admin("GET", item, accept=PROTOBUF))
    yield Attack(f"{name}, labelled", _as_admin("PATCH", item, _LABEL, media_type=MERGE), _LABEL.__len__)
    yield Attack(
        f"{name}, released", _as_admin("PATCH", item, _NO_FINALIZERS, media_type=MERGE), _NO_FINALIZERS.__len__
    )
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
