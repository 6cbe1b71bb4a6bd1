"""One server for all kubectl tests; each test has a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from kubectl import BINARY, MISSING, Kubectl
from serving_process import ServeProcess

_WORKLOADS = ("job", "statefulset")
_numbers = count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """Jobs and stateful sets stay as a test leaves them, so that it can play their controllers."""
    left_alone = ",".join(f"-{name}" for name in _WORKLOADS)
    process = ServeProcess(tmp_path_factory.mktemp("kubectl-server") / "data", f"--controllers=*,{left_alone}")
    yield process
    process.close()


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """kubectl keeps its discovery cache here; sharing it makes the tests quicker."""
    return tmp_path_factory.mktemp("kubectl-home")


@pytest.fixture
def kubectl(server: ServeProcess, kubectl_home: Path) -> Kubectl:
    if BINARY is None:
        pytest.skip(MISSING)
    return Kubectl(server.data_dir / "admin.kubeconfig", kubectl_home)


@pytest.fixture
def namespace(kubectl: Kubectl) -> str:
    name = f"test-{next(_numbers)}"
    kubectl("create", "namespace", name)
    return name
