"""Test bench of a server with --testing, placed in the chain before custom resources."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.storage.snapshots import Snapshots
from pilothouse.client.idleness import registered_workers
from pilothouse.controlplane.options.completion import CompletedOptions

if TYPE_CHECKING:
    from pilothouse.bench.bench import Bench
    from pilothouse.bench.scope import ServerScope


def new_scope(options: CompletedOptions) -> ServerScope | None:
    """Give the current task, and tasks that it starts, a controllable clock. Return None without --testing."""
    if not options.pilothouse.testing:
        registered_workers()  # keeps the server's controllers apart from the controllers of an operator under test
        return None
    from pilothouse.bench.scope import new_scope

    return new_scope()


def new_bench(scope: ServerScope | None, generic: GenericConfig, snapshots: Snapshots) -> Bench | None:
    """Return the test bench; None without --testing."""
    if scope is None:
        return None
    from pilothouse.bench.bench import Bench

    return Bench(scope, snapshots, key_prefix=generic.key_prefix)


def with_test_bench(bench: Bench | None, generic: GenericConfig, delegate: GenericAPIServer) -> GenericAPIServer:
    """Put the test bench in front of the delegate. Return the delegate unchanged without --testing."""
    if bench is None:
        return delegate
    return bench.install(replace(generic, definitions=bench.definitions), delegate)
