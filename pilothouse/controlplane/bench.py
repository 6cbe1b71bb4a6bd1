"""The test bench of a server with --testing: a server of the chain like the others, before custom resources."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.storage.snapshots import Snapshots
from pilothouse.controlplane.options.completion import CompletedOptions

if TYPE_CHECKING:
    from pilothouse.bench.bench import Bench
    from pilothouse.bench.scope import ServerScope


def new_scope(options: CompletedOptions) -> ServerScope | None:
    """Have what this task begins from now on go by a time that can be set; None where the server is to behave."""
    if not options.pilothouse.testing:
        return None
    from pilothouse.bench.scope import new_scope

    return new_scope()


def new_bench(scope: ServerScope | None, generic: GenericConfig, snapshots: Snapshots) -> Bench | None:
    """Return the bench, or None where the server is to behave."""
    if scope is None:
        return None
    from pilothouse.bench.bench import Bench

    return Bench(scope, snapshots, key_prefix=generic.key_prefix)


def with_test_bench(bench: Bench | None, generic: GenericConfig, delegate: GenericAPIServer) -> GenericAPIServer:
    """Return the delegate, or with --testing a server of the bench in front of it."""
    if bench is None:
        return delegate
    return bench.install(replace(generic, definitions=bench.definitions), delegate)
