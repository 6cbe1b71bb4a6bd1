"""Tokens and the values of secrets are in no text that anybody would log."""

from __future__ import annotations

import logging

import pytest

from pilothouse.apiserver import Request, Response
from pilothouse.apiserver.storage.interface import Entry, Event
from pilothouse.client.config.model import Credentials
from pilothouse.controllers.bootstrap.tokens import BootstrapToken
from pilothouse.kube.serviceaccount.validator import TokenBinding
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

HIDDEN = "aGlkZGVu"


async def no_body(limit: int) -> bytes:
    return b""


SHOWN: list[object] = [
    Request("GET", "/", "", [(b"authorization", f"Bearer {HIDDEN}".encode())], no_body),
    Response(200, HIDDEN.encode()),
    Entry("/registry/secrets/a/b", HIDDEN.encode(), 1, 1),
    Event(1, "/registry/secrets/a/b", Entry("/registry/secrets/a/b", HIDDEN.encode(), 1, 1), None),
    BootstrapToken("abcdef", HIDDEN),
    TokenBinding(secret={"data": {"a": HIDDEN}}),
    Credentials(token=HIDDEN, key_data=HIDDEN.encode()),
]


@pytest.mark.parametrize("value", SHOWN, ids=lambda value: type(value).__name__)
async def test_what_is_secret_is_not_shown(value: object) -> None:
    assert HIDDEN not in repr(value)
    assert HIDDEN not in str(value)


async def test_neither_tokens_nor_secrets_are_logged_at_any_level(api: API, caplog: pytest.LogCaptureFixture) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": HIDDEN}}
    with caplog.at_level(logging.DEBUG):
        await api.request("POST", "/api/v1/namespaces/default/secrets", secret)
        await api.request("PUT", "/api/v1/namespaces/default/secrets/s", {**secret, "data": {"a": HIDDEN, "b": 5}})
        await api.request("PATCH", "/api/v1/namespaces/default/secrets/s", secret, media="application/merge-patch+json")
        await api.request(
            "GET", "/api/v1/namespaces/default/secrets", accept="application/json;as=Table;v=v1;g=meta.k8s.io"
        )
        await api.request("GET", "/api/v1/nodes/none/proxy/x", authorization=f"Bearer {HIDDEN}")
        await api.request("DELETE", "/api/v1/namespaces/default/secrets/s")
    assert HIDDEN not in caplog.text
    assert api.token not in caplog.text
