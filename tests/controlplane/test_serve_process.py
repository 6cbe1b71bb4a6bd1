"""`pilothouse serve` as a process: what it shows, whom it lets in, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import PATIENCE
from serving_process import ServeProcess, parsed, refused

from pilothouse.machinery import release

Serve = Callable[..., ServeProcess]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """One server for the tests that change nothing."""
    server = ServeProcess(tmp_path_factory.mktemp("data"))
    yield server
    server.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    started: list[ServeProcess] = []

    def start(*flags: str) -> ServeProcess:
        started.append(ServeProcess(tmp_path, *flags))
        return started[-1]

    yield start
    for server in started:
        server.close()


def test_the_greeting_says_where_everything_is(running: ServeProcess) -> None:
    assert re.match(r"Pilothouse \S+ \(Kubernetes v1\.36\.\d+\) is ready\.\n", running.greeting)
    assert str(running.data_dir) in running.greeting
    assert running.greeting.endswith(f"export KUBECONFIG={running.data_dir}/admin.kubeconfig\n")


def test_the_kubeconfig_is_complete_and_private(running: ServeProcess) -> None:
    kubeconfig = running.kubeconfig()
    assert kubeconfig["server"] == f"https://127.0.0.1:{running.port}"
    assert kubeconfig["client-key-data"].startswith(b"-----BEGIN")
    assert (running.data_dir / "admin.kubeconfig").stat().st_mode & 0o777 == 0o600


def test_a_ready_server_passes_every_check(running: ServeProcess) -> None:
    status, body = running.get("/readyz?verbose")
    assert status == 200
    lines = body.decode().splitlines()
    assert lines[:4] == ["[+]ping ok", "[+]log ok", "[+]etcd ok", "[+]etcd-readiness ok"]
    assert lines[-2:] == ["[+]shutdown ok", "readyz check passed"]


def test_the_aggregators_hooks_and_its_check_come_in_upstreams_order(running: ServeProcess) -> None:
    _, body = running.get("/readyz?verbose")
    shown = [line.removeprefix("[+]").removesuffix(" ok") for line in body.decode().splitlines()]
    first = shown.index("poststarthook/start-kube-aggregator-informers")
    assert shown[first : first + 9] == [
        "poststarthook/start-kube-aggregator-informers",
        "poststarthook/apiservice-status-local-available-controller",
        "poststarthook/apiservice-status-remote-available-controller",
        "poststarthook/apiservice-registration-controller",
        "poststarthook/apiservice-discovery-controller",
        "poststarthook/kube-apiserver-autoregistration",
        "autoregister-completion",
        "poststarthook/apiservice-openapi-controller",
        "poststarthook/apiservice-openapiv3-controller",
    ]


def test_the_index_lists_the_paths(running: ServeProcess) -> None:
    status, body = running.get("/")
    assert status == 200
    assert {"/api", "/api/v1", "/healthz", "/livez/etcd", "/metrics", "/version"} <= set(parsed(body)["paths"])


def test_an_unknown_path_is_not_found(running: ServeProcess) -> None:
    assert running.get("/nowhere") == (404, b"404 page not found\n")


def test_without_credentials_there_is_no_access(running: ServeProcess) -> None:
    status, body = running.get("/version", as_admin=False)
    assert (status, parsed(body)["reason"]) == (401, "Unauthorized")


def test_a_second_process_on_the_same_data_directory_is_refused(running: ServeProcess) -> None:
    outcome = refused("--data-dir", str(running.data_dir), "--secure-port=0")
    assert outcome.returncode == 1
    holder = running.process.pid
    wanted = f"Error: --data-dir {running.data_dir} is in use by another pilothouse (pid {holder})\n"
    assert outcome.stderr.endswith(wanted)
    assert running.get("/readyz")[0] == 200


def test_a_port_that_is_taken_is_named(running: ServeProcess, tmp_path: Path) -> None:
    outcome = refused("--data-dir", str(tmp_path), f"--secure-port={running.port}")
    assert outcome.returncode == 1
    assert outcome.stderr.endswith(f"Error: failed to listen on 127.0.0.1:{running.port}: Address already in use\n")


def test_a_token_file_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("only-a-token\n")
    outcome = refused("--data-dir", str(tmp_path / "data"), "--secure-port=0", f"--token-auth-file={tokens}")
    assert outcome.returncode == 1
    _version, error = outcome.stderr.splitlines()
    assert error.startswith(f"Error: {tokens}:1: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_in_order(serve: Serve, number: signal.Signals) -> None:
    server = serve("-v=1")
    server.signal(number)
    assert server.wait() == 0
    events = re.findall(r"Lifecycle event: (\w+)", server.errors())
    ready, ending = set(events[:2]), events[2:]
    assert ready == {"MuxAndDiscoveryComplete", "HasBeenReady"}
    assert ending[0] == "ShutdownInitiated"
    assert set(ending[1:3]) == {"AfterShutdownDelayDuration", "PreShutdownHooksStopped"}
    assert ending[3] == "NotAcceptingNewRequest"
    assert set(ending[4:]) == {"InFlightRequestsDrained", "HTTPServerStoppedListening"}


def test_while_a_shutdown_is_delayed_the_server_is_unready_and_a_second_signal_ends_it_at_once(serve: Serve) -> None:
    server = serve("--shutdown-delay-duration=1h")
    server.signal(signal.SIGTERM)
    status, body = 200, b""
    while status == 200:  # until the signal has arrived
        status, body = server.get("/readyz")
    assert status == 500
    assert b"[-]shutdown failed: reason withheld\n" in body
    assert server.get("/livez")[0] == 200
    while server.process.poll() is None:  # one that follows the first too closely does not count
        server.signal(signal.SIGTERM)
    assert server.wait() == 128 + signal.SIGTERM


def test_a_signal_that_comes_twice_at_once_counts_once(serve: Serve) -> None:
    server = serve()
    server.signal(signal.SIGTERM)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_a_request_in_flight_is_answered_before_the_server_ends(serve: Serve) -> None:
    server = serve()
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}}).encode()
    connection = server.connect()
    connection.putrequest("POST", "/api/v1/namespaces/default/configmaps")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body[:10])
    _until_in_flight(server)
    server.signal(signal.SIGTERM)
    _until_refused(server.port)
    connection.send(body[10:])
    assert connection.getresponse().status == 201
    connection.close()
    assert server.wait() == 0


def test_watches_end_cleanly(serve: Serve) -> None:
    server = serve()
    connection = server.connect()
    connection.request("GET", "/api/v1/namespaces?watch=true")
    answer = connection.getresponse()
    assert parsed(answer.readline())["type"] == "ADDED"
    server.signal(signal.SIGTERM)
    answer.read()  # raises IncompleteRead when the stream is cut off in the middle
    connection.close()
    assert server.wait() == 0


def test_what_was_written_is_there_after_a_restart(serve: Serve) -> None:
    server = serve()
    connection = server.connect()
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})
    connection.request(
        "POST", "/api/v1/namespaces/default/configmaps", body, headers={"Content-Type": "application/json"}
    )
    assert connection.getresponse().status == 201
    connection.close()
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    status, kept = serve().get("/api/v1/namespaces/default/configmaps/kept")
    assert (status, parsed(kept)["metadata"]["name"]) == (200, "kept")


def test_with_rbac_everybody_may_do_what_the_roles_say(serve: Serve, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('root,admin,1,"system:masters"\nuser,jane,2,"devs"\n')
    server = serve(f"--token-auth-file={tokens}", "--authorization-mode=RBAC")
    assert server.get("/api/v1/pods", as_admin=False, token="root")[0] == 200
    status, body = server.get("/api/v1/pods", as_admin=False, token="user")
    assert status == 403
    assert parsed(body)["message"].startswith('pods is forbidden: User "jane" cannot list resource "pods"')
    assert server.get("/api", as_admin=False, token="user")[0] == 200
    assert server.get("/api", as_admin=False)[0] == 403
    assert server.get("/version", as_admin=False)[0] == 200
    assert server.get("/api", as_admin=False, token="wrong")[0] == 401
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_the_insecure_port_asks_for_nothing(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve(f"--insecure-port={port}")
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: plain.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"ok")


def test_the_insecure_port_listens_before_the_secure_one(running: ServeProcess, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = refused("--data-dir", str(tmp_path), f"--secure-port={running.port}", f"--insecure-port={port}")
    assert outcome.stderr.endswith(f"Error: failed to listen on 127.0.0.1:{port}: Address already in use\n")


def test_requests_on_the_insecure_port_are_counted_and_do_not_queue(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = serve(f"--insecure-port={port}")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        counted = b'\napiserver_current_inflight_requests{request_kind="readOnly"} 1\n' in answer.read()
        assert "X-Kubernetes-PF-FlowSchema-UID" not in answer.headers
    assert counted
    assert server.get("/readyz")[0] == 200


def test_the_log_says_what_starts_and_with_which_flags_where_that_is_asked_for(serve: Serve) -> None:
    server = serve("-v=1", "--event-ttl=90m")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    messages = [line.partition("] ")[2] for line in server.errors().splitlines()]
    assert {'FLAG: --event-ttl="1h30m0s"', 'FLAG: --secure-port="0"', 'FLAG: --tls-cert-file=""'} <= set(messages)
    said = [message for message in messages if not message.startswith("FLAG: ")]
    wanted = [
        f"Version: {release.current().git_version}",
        "Using reconciler: lease",
        "waiting for initial CRD sync...",
        "initial CRD sync complete...",
        "Starting autoregister controller",
    ]
    assert [message for message in said if message in wanted] == wanted


def test_the_insecure_port_answers_to_no_name_but_this_machine_s_own(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve(f"--insecure-port={port}")
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.sendall(b"GET /api/v1/secrets HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: plain.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b'not to the Host \\"rebound.example\\"' in answer


def test_json_logs_are_json(serve: Serve) -> None:
    server = serve("--logging-format=json")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    lines = [json.loads(line) for line in server.errors().splitlines()]
    assert any(line["msg"] == "Received SIGTERM: stopping; a second signal (Ctrl-C) stops at once" for line in lines)


def _until_in_flight(server: ServeProcess) -> None:
    """Until the server has begun to work on a write."""
    pattern = re.compile(rb'apiserver_current_inflight_requests\{request_kind="mutating"\} ([\d.]+)')
    while True:
        found = pattern.search(server.get("/metrics")[1])
        if found and float(found[1]) >= 1:
            return


def _until_refused(port: int) -> None:
    """Until the server has stopped listening."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            continue  # the connection was waiting to be accepted when the socket was closed


def test_a_service_manager_that_waits_is_told_when_it_is_ready(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(str(tmp_path / "notify"))
        notices.settimeout(PATIENCE)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        serve()
        assert notices.recv(100) == b"READY=1\n"
