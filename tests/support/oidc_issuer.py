"""An issuer of ID tokens over real TLS, with keys that can be rotated."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt
import orjson
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from webhook_server import WebhookServer, webhook_server

from pilothouse.client import Json


@cache
def rsa_key(name: str = "first") -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@cache
def ec_key(name: str = "first") -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def jwk(key: Any, kid: str) -> Json:
    algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    public: Json = orjson.loads(algorithm.to_jwk(key.public_key()))
    return public | {"kid": kid, "use": "sig"}


@dataclass
class Issuer:
    keys: list[Json] = field(default_factory=lambda: [jwk(rsa_key(), "rsa"), jwk(ec_key(), "ec")])
    fetches: int = 0
    broken: bool = False
    says: Json = field(default_factory=dict)
    """What its configuration says instead, by field; None leaves the field out."""
    pages: dict[str, str] = field(default_factory=dict)
    """What else it answers, by path, to those who show the token `let-me-in`."""
    server: WebhookServer = field(default=None)  # type: ignore[assignment]  # there when it listens

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server.port}"

    @property
    def ca(self) -> str:
        return self.server.ca.certificate.decode()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.broken:
            return web.Response(status=503)
        if request.path == "/keys":
            self.fetches += 1
            return web.json_response({"keys": self.keys})
        if request.path in ("/.well-known/openid-configuration", "/elsewhere"):
            configuration = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"} | self.says
            return web.json_response({name: value for name, value in configuration.items() if value is not None})
        if request.path in self.pages and request.headers.get("Authorization") == "Bearer let-me-in":
            return web.Response(text=self.pages[request.path])
        return web.Response(status=404)

    def claims(self, **changed: Any) -> Json:
        now = int(time.time())
        claims = {"iss": self.url, "aud": "me", "sub": "jane", "exp": now + 60, "iat": now} | changed
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, *, key: Any = None, kid: str = "rsa", algorithm: str = "RS256", **claims: Any) -> str:
        return jwt.encode(self.claims(**claims), key or rsa_key(), algorithm=algorithm, headers={"kid": kid})


@asynccontextmanager
async def oidc_issuer() -> AsyncIterator[Issuer]:
    issuer = Issuer()
    async with webhook_server(issuer.answer) as server:
        issuer.server = server
        yield issuer
