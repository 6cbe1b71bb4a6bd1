"""Tokens of service accounts for tests: keys in files, a clock that is set, and objects that need no store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from pilothouse.client import Json
from pilothouse.kube.serviceaccount.validator import UNBOUND, Lifetime, TokenBinding, make_claims

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ISSUER = "https://issuer.example"


@dataclass
class SetClock:
    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


def write_key(file: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None) -> Path:
    """A private key, new and on P-256 unless one is given."""
    made = key or ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return file


def public_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def named(name: str, uid: str, **meta: str) -> Json:
    return {"metadata": {"name": name, "namespace": "ns", "uid": uid, **meta}}


ROBOT = named("robot", "u-robot")


def claims(binding: TokenBinding = UNBOUND, *, audiences: list[str] | None = None) -> Json:
    """Of a token that the robot got at noon, for ten minutes."""
    return make_claims(ROBOT, binding, audiences=audiences or [ISSUER], lifetime=Lifetime(600), now=NOON)


@dataclass
class Objects:
    """What a validator asks about, by kind and name."""

    known: dict[tuple[str, str], Json] = field(default_factory=lambda: {("serviceaccount", "robot"): ROBOT})

    async def service_account(self, namespace: str, name: str) -> Json | None:
        return self.known.get(("serviceaccount", name)) if namespace == "ns" else None

    async def pod(self, namespace: str, name: str) -> Json | None:
        return self.known.get(("pod", name))

    async def secret(self, namespace: str, name: str) -> Json | None:
        return self.known.get(("secret", name))

    async def node(self, name: str) -> Json | None:
        return self.known.get(("node", name))
