"""Manifests on pages are taken by a server: each goes through a dry run, as that of `kubectl apply`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from documented_commands import name_of

from pilothouse.testing import BlockingAPI, Server
from tools.docs.blocks import UnknownForm, blocks_of
from tools.docs.pages import pages

OF_FILES = (".config.k8s.io/", "audit.k8s.io/", "client.authentication.k8s.io/", "kwok.x-k8s.io/")
"""What a program reads from a file, or has a definition of its own: no server has these."""
NEEDED_BY_OTHERS = ("CustomResourceDefinition", "Namespace")


def _documents(page: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for block in blocks_of(page):
        if block.language == "yaml" and not (block.title or block.no_run):
            for document in yaml.safe_load_all(block.text):
                if isinstance(document, dict) and {"apiVersion", "kind"} <= document.keys():
                    yield block.place, document


def _has_manifests(page: Path) -> bool:
    try:
        return any(True for _ in _documents(page))
    except (UnknownForm, yaml.YAMLError):
        return False  # test_page_forms.py tells


@pytest.fixture(scope="module")
def api() -> Iterator[BlockingAPI]:
    with Server(testing=True, simulated_nodes=1) as running:
        running.settle()  # definitions of the server's own are there
        yield running


@pytest.mark.parametrize("page", [page for page in pages() if _has_manifests(page)], ids=name_of)
def test_the_manifests_of_a_page_are_taken(page: Path, api: BlockingAPI) -> None:
    before = api.snapshot()
    for place, document in _documents(page):
        if not any(document["apiVersion"].startswith(name) or name in document["apiVersion"] for name in OF_FILES):
            _apply(api, document, place, dry=document["kind"] not in NEEDED_BY_OTHERS)
    api.restore(before)


def _apply(api: BlockingAPI, document: dict[str, Any], place: str, *, dry: bool) -> None:
    asked = "?fieldManager=docs&force=true&fieldValidation=Strict" + ("&dryRun=All" if dry else "")
    path = _path(api, document, place) + asked
    answer = api.request("PATCH", path, document, media="application/apply-patch+yaml")
    assert answer.status in (200, 201), f"{place}: {answer.body.decode()}"


def _path(api: BlockingAPI, document: dict[str, Any], place: str) -> str:
    version, metadata = document["apiVersion"], document.get("metadata", {})
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    known = {one["kind"]: one for one in api.request("GET", root).json.get("resources", ()) if "/" not in one["name"]}
    assert document["kind"] in known, f"{place}: no server has {version} {document['kind']}"
    resource = known[document["kind"]]
    space = f"/namespaces/{metadata.get('namespace', 'default')}" if resource["namespaced"] else ""
    return f"{root}{space}/{resource['name']}/{metadata['name']}"
