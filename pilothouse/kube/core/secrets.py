"""Secrets, and the required keys of each secret type."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from pilothouse.apiserver.registry.resource import Names, Resource, metadata_fields
from pilothouse.apiserver.registry.table import AGE, NAME, Column, count
from pilothouse.kube.core.configmaps import MAX_SIZE, byte_length, forbid_change, validate_keys
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.codec.json import JsonError, parse
from pilothouse.machinery.field import Errors, invalid, required, root, too_long
from pilothouse.machinery.gofmt import not_an_object
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.pem import pem_blocks
from pilothouse.machinery.validation.immutable import validate_immutable_field

OPAQUE = "Opaque"
SERVICE_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
TLS = "kubernetes.io/tls"
SSH_AUTH = "kubernetes.io/ssh-auth"
BASIC_AUTH = "kubernetes.io/basic-auth"
_DOCKER_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


class SecretStrategy(KubeStrategy):
    repeats_warnings_on_update = True

    def default(self, obj: Json) -> None:
        obj["type"] = obj.get("type") or OPAQUE
        text = obj.pop("stringData", None)
        if text:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
            obj["data"] = (obj.get("data") or {}) | encoded

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        obj["type"] = obj.get("type") or old.get("type")

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_keys(obj, "data")
        if sum(map(byte_length, (obj.get("data") or {}).values())) > MAX_SIZE:
            yield too_long(root("data"), MAX_SIZE)
        kind, data = obj.get("type"), obj.get("data") or {}
        if kind == SERVICE_ACCOUNT_TOKEN:
            if not annotations_of(obj).get(SERVICE_ACCOUNT_NAME):
                yield required(root("metadata", "annotations").key(SERVICE_ACCOUNT_NAME))
        elif kind in _DOCKER_KEYS:
            docker_key = _DOCKER_KEYS[kind]
            if docker_key not in data:
                yield from _require(docker_key)
            else:
                problem = _json_object_problem(_bytes(data, docker_key))
                if problem:
                    yield invalid(root("data").key(docker_key), "<secret contents redacted>", problem)
        elif kind == BASIC_AUTH:
            if "username" not in data and "password" not in data:
                yield from _require("username", "password")
        elif kind == SSH_AUTH:
            if not data.get("ssh-privatekey"):
                yield from _require("ssh-privatekey")
        elif kind == TLS:
            yield from _require(*(key for key in ("tls.crt", "tls.key") if key not in data))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_immutable_field(obj.get("type"), old.get("type"), root("type"))
        if old.get("immutable"):
            yield from forbid_change(obj, old, "immutable", "data")
        yield from self.validate(obj)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        if obj.get("type") != TLS:
            return ()
        data = obj.get("data") or {}
        problem = key_pair_problem(_bytes(data, "tls.crt"), _bytes(data, "tls.key"))
        return (problem,) if problem else ()


def _require(*keys: str) -> Errors:
    return (required(root("data").key(key)) for key in keys)


def _json_object_problem(text: bytes) -> str:
    """Return Go's error message for a text other than a JSON object, empty for a JSON object."""
    try:
        value = parse(text).value
    except JsonError as error:
        return str(error)
    if value is None or isinstance(value, dict):
        return ""
    return not_an_object(value)


def _bytes(data: Json, key: str) -> bytes:
    return base64.b64decode(data.get(key) or "")


_SECRET = "io.k8s.api.core.v1.Secret"

SECRETS = Resource(
    names=Names("secrets", kind="Secret"),
    strategy=SecretStrategy(),
    is_confidential=True,
    fields=lambda obj: metadata_fields(obj) | {"type": obj.get("type") or ""},
    indexed_fields=("metadata.name", "type"),
    columns=[
        NAME,
        Column("Type", lambda obj: obj.get("type") or "", documented=(_SECRET, "type")),
        Column("Data", count("data"), documented=(_SECRET, "data")),
        AGE,
    ],
)


def key_pair_problem(certificate: bytes, key: bytes) -> str:
    """Return crypto/tls's message for an invalid certificate and key pair, empty for a valid pair."""
    certificates, keys = _blocks(certificate), _blocks(key)
    if "CERTIFICATE" not in certificates:
        return _missing("certificate", certificates, "CERTIFICATE")
    if not any(kind == "PRIVATE KEY" or kind.endswith(" PRIVATE KEY") for kind in keys):
        return _missing("key", keys, "PRIVATE KEY")
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        public = x509.load_pem_x509_certificate(certificate).public_key()
    except ValueError:
        return "x509: malformed certificate"
    try:
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError):
        return "tls: failed to parse private key"
    if type(public) is not type(private.public_key()):
        return "tls: private key type does not match public key type"
    return "" if private.public_key() == public else "tls: private key does not match public key"


def _blocks(pem: bytes) -> list[str]:
    return [block.type for block in pem_blocks(pem)]


def _missing(kind: str, types: list[str], expected: str) -> str:
    if not types:
        return f"tls: failed to find any PEM data in {kind} input"
    kinds = " ".join(types)
    skipped = f"in {kind} input after skipping PEM blocks of the following types: [{kinds}]"
    if kind == "key":
        if types == ["CERTIFICATE"]:
            return "tls: found a certificate rather than a key in the PEM for the private key"
        return f'tls: failed to find PEM block with type ending in "{expected}" {skipped}'
    if len(types) == 1 and kinds.endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    return f'tls: failed to find "{expected}" PEM block {skipped}'
