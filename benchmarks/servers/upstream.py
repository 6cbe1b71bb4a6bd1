"""A kube-apiserver with its etcd, started here from their programs, for comparisons."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from servers.local import TOKEN, wait_ready
from servers.target import Target


@contextmanager
def kube_apiserver(folder: Path, program: Path, etcd: Path) -> Iterator[tuple[Target, float]]:
    """The server with RBAC and fsync, as `local_pilothouse` runs ours, and the seconds until /readyz said yes."""
    tokens, key, port = folder / "tokens.csv", folder / "sa.key", _free_port()
    tokens.write_text(f'{TOKEN},benchmark,benchmark,"system:masters"\n')
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    client, peer = (f"http://127.0.0.1:{_free_port()}" for _ in range(2))
    with ExitStack() as stack:
        flags = [f"--data-dir={folder}/etcd", f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]
        flags += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"]
        flags += [f"--initial-cluster=default={peer}", "--log-level=error"]
        store = _started(stack, folder / "etcd.log", etcd, flags)
        start = time.perf_counter()
        flags = [f"--etcd-servers={client}", f"--secure-port={port}", "--bind-address=127.0.0.1"]
        flags += [f"--cert-dir={folder}/certs", f"--token-auth-file={tokens}", "--authorization-mode=RBAC"]
        flags += ["--service-cluster-ip-range=10.0.0.0/16", "--service-account-issuer=https://kubernetes.default.svc"]
        flags += [f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"]
        server = _started(stack, folder / "kube-apiserver.log", program, flags)
        target = Target(program.name, f"https://127.0.0.1:{port}", TOKEN, None, server.pid, (store.pid,))
        wait_ready(target, server)
        yield target, time.perf_counter() - start


def _started(stack: ExitStack, log: Path, program: Path, flags: list[str]) -> subprocess.Popen[bytes]:
    output = stack.enter_context(log.open("wb"))
    process = subprocess.Popen([str(program), *flags], stdout=output, stderr=subprocess.STDOUT)
    stack.callback(process.wait, 60)
    stack.callback(process.terminate)
    return process


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
