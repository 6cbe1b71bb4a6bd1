"""Others can verify tokens with what the server tells everybody."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import jwt
import pytest
from service_account_tokens import write_key
from whole_server import whole_server

from pilothouse.kube.config import ServiceAccountConfig
from pilothouse.kube.serviceaccount.keys import VerifyingKeys
from pilothouse.kube.serviceaccount.openid import OpenIDMetadata, is_openid_issuer
from pilothouse.testing import API

CONFIGURATION, KEYS = "/.well-known/openid-configuration", "/openid/v1/jwks"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ISSUER = "https://kubernetes.default.svc"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[API]:
    key = write_key(tmp_path / "sa.key")
    keys = {"service_account_signing_key_file": key, "service_account_key_file": key}
    async with whole_server(advertise_address="192.0.2.2", **keys) as server:
        yield server


async def test_the_configuration_names_issuer_and_keys(api: API) -> None:
    answer = await api.request("GET", CONFIGURATION)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "public, max-age=3600"
    assert answer.json == {
        "issuer": ISSUER,
        "jwks_uri": f"https://192.0.2.2:{urlsplit(api.url).port}{KEYS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }


async def test_a_token_verifies_with_the_keys_that_are_shown(api: API) -> None:
    await api.request("POST", ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    issued = await api.request("POST", f"{ACCOUNTS}/robot/token", asked)
    assert issued.status == 201
    answer = await api.request("GET", KEYS, accept="*/*")
    assert answer.headers["content-type"] == "application/jwk-set+json"
    assert answer.headers["cache-control"] == "public, max-age=3600"
    token = issued.json["status"]["token"]
    key = jwt.PyJWKSet.from_dict(answer.json)[jwt.get_unverified_header(token)["kid"]]
    said = jwt.decode(token, key.key, algorithms=["ES256"], audience=ISSUER, issuer=ISSUER)
    assert said["sub"] == "system:serviceaccount:default:robot"


async def test_both_paths_can_only_be_read(api: API) -> None:
    listed = (await api.request("GET", "/")).json["paths"]
    for path in (CONFIGURATION, KEYS):
        assert path in listed
        assert (await api.request("POST", path)).status == 405


def test_keys_may_be_elsewhere(tmp_path: Path) -> None:
    config = ServiceAccountConfig(write_key(tmp_path / "sa.key"), jwks_uri="https://keys.example/all")
    shown = OpenIDMetadata(config, VerifyingKeys(config.verifying_files), lambda: "here")
    assert shown.configuration["jwks_uri"] == "https://keys.example/all"


@pytest.mark.parametrize(
    ("issuer", "fits"),
    [("https://a.example/b", True), ("http://a.example", False), ("kubernetes", False), ("https://a.example?x", False)],
)
def test_only_issuers_that_are_https_urls_can_be_discovered(issuer: str, fits: bool) -> None:
    assert is_openid_issuer(issuer) is fits
