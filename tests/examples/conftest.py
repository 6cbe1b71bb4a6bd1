"""What the tests of the examples that are extension servers share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from example_module import Running, example_module
from kubectl import BINARY, MISSING, Kubectl

from pilothouse.testing import BlockingAPI


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Running:
    """Runs an example behind a whole server, both in this process, for as long as a block lasts."""
    if BINARY is None:
        pytest.skip(MISSING)

    @contextmanager
    def run(name: str) -> Iterator[tuple[BlockingAPI, Kubectl]]:
        with example_module(name).server.in_test() as api:
            yield api, Kubectl(Path(api.kubeconfig), tmp_path_factory.mktemp("home"))

    return run
