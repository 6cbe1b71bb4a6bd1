"""Examples show what anybody can write, and tests hold to what is promised: both import public names only.

The unit tests of a layer, in the folder of its name, also know the internals of it and of the layers below, which are
those of the import contract.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
PUBLIC = {
    "pilothouse",
    *("pilothouse.apiserver", "pilothouse.builder", "pilothouse.client", "pilothouse.errors", "pilothouse.operator"),
    "pilothouse.testing",
}

OF_LAYER = {
    "conftest.py": "machinery",
    "docs/test_figures.py": "machinery",
    "controlplane/test_replicas_on_etcd.py": "cli",
    "deploy/test_deploy_files.py": "cli",
    "docs/test_versions.py": "apiserver",
    "fuzz/test_fuzzed_bodies.py": "machinery",
    "fuzz/test_fuzzed_connections.py": "apiserver",
    "fuzz/test_secrets_stay_unseen.py": "kube",
    "recorded/replay.py": "client",
    "support/api_server_fixture.py": "machinery",
    "support/apply_schemas.py": "machinery",
    "support/cacher_harness.py": "apiserver",
    "support/cacher_memory_store.py": "apiserver",
    "support/chaos_run.py": "client",
    "support/controllers_on_a_server.py": "controllers",
    "support/crash_account.py": "apiserver",
    "support/crash_writer.py": "apiserver",
    "support/delegating_server.py": "builder",
    "support/documented_commands.py": "console",
    "support/etcd_backend.py": "apiserver",
    "support/faulty_proxy.py": "machinery",
    "support/filter_requests.py": "apiserver",
    "support/fuzz_objects.py": "machinery",
    "support/fuzz_verdicts.py": "machinery",
    "support/hostile_http2.py": "apiserver",
    "support/http2_peer.py": "apiserver",
    "support/kms_plugin.py": "apiserver",
    "support/kubelet_double.py": "controlplane",
    "support/live_server.py": "client",
    "support/metrics_apis.py": "kinds",
    "support/modelled_cluster.py": "scheduler",
    "support/observations.py": "apiserver",
    "support/openapi_groups.py": "apiserver",
    "support/operator_soak.py": "client",
    "support/patch_schemas.py": "machinery",
    "support/played_pods.py": "machinery",
    "support/pod_lives.py": "nodes",
    "support/pods_that_run.py": "client",
    "support/power_cuts.py": "apiserver",
    "support/rbac_store.py": "kube",
    "support/retrying_client.py": "apiserver",
    "support/rules.py": "machinery",
    "support/sample_jobs.py": "kube",
    "support/sample_pods.py": "kube",
    "support/schemas_of_specs.py": "extensions",
    "support/service_account_tokens.py": "kube",
    "support/services.py": "kube",
    "support/serving_harness.py": "controlplane",
    "support/serving_process.py": "machinery",
    "support/shelves.py": "builder",
    "support/simulated_container.py": "nodes",
    "support/skipping_clock.py": "client",
    "support/storage_backends.py": "apiserver",
    "support/store_model.py": "apiserver",
    "support/store_reading.py": "apiserver",
    "support/swagger.py": "aggregator",
    "support/tls_backends.py": "controlplane",
    "support/webhook_server.py": "apiserver",
    "support/wire_objects.py": "machinery",
    "tools/test_added_field.py": "machinery",
}
"""Files elsewhere that are unit tests of a layer, or serve them."""

EXCEPTIONS = {
    "apiserver/authn/test_names_of_users.py": "one rule for the authenticators of all layers",
    "apiserver/filters/test_impersonation_by_roles.py": "the filter asks a real authorizer",
    "apiserver/outbound/test_http2_to_servers.py": "the aggregator sends real requests",
    "apiserver/serving": "serves with the certificates that the server makes for itself",
    "controllers/test_certificate_signing.py": "signs with the CA that the server makes for itself",
    "controllers/test_quota_sums.py": "sums what admission's evaluators count",
    "controllers/test_resource_quota_controller.py": "sums what admission's evaluators count",
    "controllers/test_token_secrets.py": "hands out real tokens",
    "scaffold": "the commands of projects are those of the command line",
    "machinery/codec/test_yaml_is_read_in_one_place.py": "reads YAML as the commands and the client do",
    "kube/core/pods": "the kubelet has the certificates that the server makes for itself",
}
"""Unit tests of a layer that need a part of a layer above it, and why."""


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif not isinstance(node, ast.expr):  # no expression contains an import
            yield from _imports(node)


@cache
def _internals(file: Path) -> frozenset[str]:
    """Return the modules of ours that the file imports and that are not public."""
    imported = _imports(ast.parse(file.read_text()))
    return frozenset(name for name in imported if name.partition(".")[0] == "pilothouse") - PUBLIC


@cache
def _layers() -> list[list[str]]:
    """Topmost first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [[name.strip() for name in row.split("|")] for row in contracts[0]["layers"]]


def _layer_of(file: str) -> str:
    return f"pilothouse.{OF_LAYER.get(file, file.partition('/')[0])}"


def _known_to(layer: str) -> set[str]:
    """Return the layer itself, if it is one, and all that stand below it."""
    for row, names in enumerate(_layers()):
        if layer in names:
            return {layer, *(name for below in _layers()[row + 1 :] for name in below)}
    return set()


def _too_high(file: Path) -> set[str]:
    """Return the modules that the test imports but may not know."""
    known = _known_to(_layer_of(str(file.relative_to(TESTS))))
    return {name for name in _internals(file) if ".".join(name.split(".")[:2]) not in known}


def _exception(file: Path) -> str:
    name = str(file.relative_to(TESTS))
    return next((each for each in EXCEPTIONS if f"{name}/".startswith(f"{each}/")), "")


def _ours(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.py") if "pilothouse" in file.read_text())


@pytest.mark.parametrize("example", sorted((ROOT / "examples").rglob("*.py")), ids=lambda file: file.name)
def test_an_example_imports_public_names_only(example: Path) -> None:
    assert _internals(example) == set()


def test_a_test_knows_no_more_than_its_layer() -> None:
    too_high = {str(file): _too_high(file) for file in _ours(TESTS) if not _exception(file)}
    assert {file: modules for file, modules in too_high.items() if modules} == {}


def test_no_exception_is_left_that_nobody_needs() -> None:
    needed = {_exception(file) for file in _ours(TESTS) if _too_high(file)}
    assert set(EXCEPTIONS) - needed == set()


@pytest.mark.parametrize("file", OF_LAYER)
def test_a_file_that_is_said_to_know_a_layer_knows_it(file: str) -> None:
    assert any(f"{name}.".startswith(f"{_layer_of(file)}.") for name in _internals(TESTS / file))
