"""Requests and handlers for filters to be tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Headers, Request, Response
from pilothouse.apiserver.request_info import request_info

MakeRequest = Callable[..., Request]


def make_request() -> MakeRequest:
    def make(
        path: str = "/api/v1/namespaces/ns/configmaps/a",
        *,
        method: str = "GET",
        query: str = "",
        headers: dict[str, str] | None = None,
        user: User | None = None,
    ) -> Request:
        pairs: Headers = [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]
        request = Request(method, path, query, pairs, _no_body)
        request.info = request_info(request)
        request.user = user or User("alice", groups=("system:authenticated",))
        return request

    return make


async def _no_body(limit: int) -> bytes:
    return b""


async def answer_ok(request: Request) -> Response:
    return Response(200, b"ok")


def header(response: Response, name: str) -> list[str]:
    return [value.decode() for key, value in response.headers if key == name.encode()]


def body_of(response: Response) -> Any:
    assert isinstance(response.body, bytes)
    return response.body
