"""Where the system does not share connections out among sockets, workers take them from one."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from worker_processes import WorkersServer

ELSEWHERE = """
import sys
from pilothouse.controlplane.workers import supervisor
supervisor.KERNEL_SHARES_OUT = False
from pilothouse.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


class ElsewhereServer(WorkersServer):
    """As on a system that is not Linux."""

    program = (sys.executable, "-c", ELSEWHERE)


def test_workers_with_one_socket_serve_and_end_and_free_the_port(tmp_path: Path) -> None:
    server = ElsewhereServer(tmp_path / "data")
    try:
        connections = [server.connect() for _ in range(8)]
        for connection in connections:
            connection.request("GET", "/api/v1/namespaces/default")
        assert [connection.getresponse().status for connection in connections] == [200] * 8
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    finally:
        server.close()
