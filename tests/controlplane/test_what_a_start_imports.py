"""A start imports what it needs and nothing else: it must stay below a second as the server grows.

Counted, not timed: a module takes a third of a millisecond, a heavy one ten to a hundred.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Set
from pathlib import Path

import pytest

from pilothouse.controlplane.options.completion import complete
from pilothouse.controlplane.options.options import Options
from pilothouse.controlplane.serving import Certificates

_HEAVY = {
    *("aiohttp", "cel_expr_python", "cryptography", "google.protobuf", "grpc", "jwt", "nacl", "uvicorn", "yaml"),
    *("http.cookies", "multiprocessing", "unittest", "xml"),
}
_OF_FEATURES = {
    "pilothouse.apiserver.cel": "expressions of webhooks and policies",
    "pilothouse.apiserver.endpoints.patchers": "patches",
    "pilothouse.apiserver.http2": "connections over HTTP/2",
    "pilothouse.apiserver.openapi.resource_routes": "OpenAPI documents",
    "pilothouse.apiserver.storage.etcd": "etcd",
    "pilothouse.client.cache": "informers",
    "pilothouse.client.rest.webhook": "webhooks of kubeconfigs",
    "pilothouse.controllers.manager": "controllers, which start when the server is ready",
    "pilothouse.extensions.customresources.version_endpoints": "custom resources",
    "pilothouse.extensions.schema.compiled": "schemas of custom resources",
    "pilothouse.extensions.schema.definition": "validation of definitions",
    "pilothouse.machinery.cel": "expressions",
    "pilothouse.machinery.protobuf": "protobuf",
}
_MODULES_OF_OURS = 1150
_ALL_MODULES = 1450
_PROGRAM = """
import os, sys
from pilothouse.controlplane.options.completion import complete
from pilothouse.controlplane.options.options import Options
from pilothouse.controlplane.run import run

def ready(_):
    print(*sys.modules, sep="\\n", flush=True)
    os._exit(0)

run(complete(Options.parse(sys.argv[1:])).validate(), ready)
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Set[str]:
    """By a server that is ready: on a new store, with certificates that an earlier start made."""
    flags = _flags(tmp_path_factory.mktemp("data"))
    Certificates.ensure(complete(Options.parse(flags)).validate())
    ran = subprocess.run([sys.executable, "-c", _PROGRAM, *flags], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def _flags(data_dir: Path) -> list[str]:
    return ["--secure-port=0", f"--data-dir={data_dir}", "--service-cluster-ip-range=10.0.0.0/16"]


def test_no_heavy_library_is_needed(imported: Set[str]) -> None:
    assert imported & _HEAVY == set()


def test_what_only_a_feature_needs_waits_for_its_first_use(imported: Set[str]) -> None:
    early = {name for name in imported for feature in _OF_FEATURES if f"{name}.".startswith(f"{feature}.")}
    assert early == set()


@pytest.mark.parametrize("feature", _OF_FEATURES)
def test_the_features_that_wait_exist(feature: str) -> None:
    """Or else the test above says nothing about one that was renamed."""
    path = Path(__file__).parents[2].joinpath(*feature.split("."))
    assert path.is_dir() or path.with_suffix(".py").is_file()


def test_the_modules_are_not_too_many(imported: Set[str]) -> None:
    ours = {name for name in imported if name.partition(".")[0] == "pilothouse"}
    assert 500 < len(ours) < _MODULES_OF_OURS
    assert len(imported) < _ALL_MODULES
