"""Discovery of each Kubernetes version: its groups, versions and kinds differ from 1.36 by exactly these facts."""

from __future__ import annotations

import gzip
import json
import ssl

import pytest
from aiohttp import ClientSession

from pilothouse.client import Json
from pilothouse.testing import server

_ADMISSION, _DEVICES, _STORAGE = "admissionregistration.k8s.io/v1", "resource.k8s.io/v1", "storage.k8s.io/v1"
_CERTIFICATES, _MIGRATION = "certificates.k8s.io/v1", "storagemigration.k8s.io/v1"
_POLICIES = {f"{_ADMISSION}/mutatingadmissionpolicies", f"{_ADMISSION}/mutatingadmissionpolicybindings"}
_CLASSES = f"{_STORAGE}/volumeattributesclasses"

_LESS = {"1.34": _POLICIES, "1.35": _POLICIES, "1.37": set[str]()}
_MORE = {
    "1.34": set[str](),
    "1.35": set[str](),
    "1.37": {
        f"{_CERTIFICATES}/clustertrustbundles",
        f"{_CERTIFICATES}/podcertificaterequests",
        f"{_CERTIFICATES}/podcertificaterequests/status",
        f"{_DEVICES}/devicetaintrules",
        f"{_DEVICES}/devicetaintrules/status",
        f"{_MIGRATION}/storageversionmigrations",
        f"{_MIGRATION}/storageversionmigrations/status",
        f"{_STORAGE}/csinodes/status",
    },
}
_STORED_ELSEWHERE = {
    "1.34": {
        _CLASSES,
        f"{_DEVICES}/deviceclasses",
        f"{_DEVICES}/resourceclaims",
        f"{_DEVICES}/resourceclaimtemplates",
        f"{_DEVICES}/resourceslices",
    },
    "1.35": {_CLASSES},
    "1.37": _POLICIES,
}
"""Resources whose storage version, and with it its hash, is another than in 1.36."""

_SECRETS = {"group": "", "resource": "secrets"}
_TAINT = {"key": "example.com/broken", "effect": "None"}


async def _resources(version: str) -> dict[str, Json]:
    async with server(kubernetes_version=version, testing=True) as api:
        client = api.client()
        groups = (await client.get_json("/apis"))["groups"]
        paths = [f"/apis/{each['groupVersion']}" for group in groups for each in group["versions"]]
        documents = [await client.get_json(path) for path in ("/api/v1", *paths)]
        return {f"{each['groupVersion']}/{one['name']}": one for each in documents for one in each["resources"]}


@pytest.mark.parametrize("version", ["1.34", "1.35", "1.37"])
async def test_a_version_serves_by_default_the_resources_of_its_own(version: str) -> None:
    base, found = await _resources("1.36"), await _resources(version)
    assert base.keys() - found.keys() == _LESS[version]
    assert found.keys() - base.keys() == _MORE[version]
    changed = {name for name in base.keys() & found.keys() if base[name] != found[name]}
    assert changed == _STORED_ELSEWHERE[version]


async def test_kinds_that_became_stable_in_1_37_are_written_and_read() -> None:
    async with server(kubernetes_version="1.37") as api:
        for version, plural, kind, spec in (
            ("resource.k8s.io/v1", "devicetaintrules", "DeviceTaintRule", {"taint": _TAINT}),
            (_MIGRATION, "storageversionmigrations", "StorageVersionMigration", {"resource": _SECRETS}),
        ):
            resource = api.client().resource(version, plural)
            obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
            created = await resource.create(obj)
            assert (created["apiVersion"], created["kind"]) == (version, kind)
            assert (await resource.get("a"))["spec"] == created["spec"]


@pytest.mark.parametrize(("version", "encoding"), [("1.36", None), ("1.37", "gzip")])
async def test_lists_by_watches_are_compressed_since_1_37(version: str, encoding: str | None) -> None:
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with server(kubernetes_version=version, controllers="-*") as api:
        tls = ssl.create_default_context(cafile=str(api.ca))
        headers = {"Authorization": f"Bearer {api.token}", "Accept-Encoding": "gzip"}
        async with ClientSession(headers=headers, auto_decompress=False) as session:
            url = f"{api.url}/api/v1/namespaces?{query}&timeoutSeconds=1"
            async with session.get(url, ssl=tls) as answer:
                assert answer.headers.get("Content-Encoding") == encoding
                body = await answer.read()
        lines = (gzip.decompress(body) if encoding else body).splitlines()
        assert json.loads(lines[-1])["type"] == "BOOKMARK"


async def test_an_emulated_version_does_not_serve_newer_kinds() -> None:
    async with server(kubernetes_version="1.37", emulated_version="1.36") as api:
        groups = {group["name"] for group in (await api.client().get_json("/apis"))["groups"]}
        assert "storagemigration.k8s.io" not in groups
        certificates = await api.client().get_json("/apis/certificates.k8s.io/v1")
        assert "podcertificaterequests" not in {resource["name"] for resource in certificates["resources"]}
