"""pilothouse.testing: a whole server for as long as a block lasts, in each of its forms."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kubectl import BINARY, MISSING

from pilothouse.machinery.objects import Json
from pilothouse.testing import Server, StartError, server
from pilothouse.testing.story import collapsed

NAMESPACES = "/api/v1/namespaces"


async def test_a_server_is_ready_when_the_block_begins() -> None:
    async with server() as api:
        assert (await api.request("GET", "/readyz")).body == b"ok"
        assert (await api.client().get_json("/version"))["minor"] == "36"


async def test_two_servers_in_one_loop_know_nothing_of_each_other() -> None:
    async with server() as one, server() as two:
        created = await one.request("POST", NAMESPACES, {"metadata": {"name": "here"}})
        assert created.status == 201
        assert (await two.request("GET", f"{NAMESPACES}/here")).status == 404


async def test_nothing_of_a_server_is_left() -> None:
    before = {thread.name for thread in threading.enumerate()}
    async with server() as api:
        home, port = api.home.scratch, urlsplit(api.url).port
        assert home.exists()
    assert not home.exists()
    assert port is not None
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    left = {thread.name for thread in threading.enumerate()} - before
    assert not [name for name in left if not name.startswith(("asyncio_", "offload"))]


async def test_a_data_directory_that_was_given_stays_and_is_served_again(tmp_path: Path) -> None:
    async with server(data_dir=tmp_path) as api:
        await api.client().resource("v1", "namespaces").create({"metadata": {"name": "kept"}})
    async with server(data_dir=tmp_path) as api:
        assert (await api.request("GET", f"{NAMESPACES}/kept")).status == 200


async def test_flags_are_keywords() -> None:
    async with server(authorization_mode=["Node", "RBAC"], anonymous_auth=False) as api:
        assert (await api.as_user("ann").request("GET", NAMESPACES)).status == 403
        assert (await api.as_user("root", groups=["a", "system:masters"]).request("GET", NAMESPACES)).status == 200


@pytest.mark.parametrize("process", [False, True])
async def test_all_that_is_wrong_with_the_flags_is_said(process: bool) -> None:
    with pytest.raises(StartError, match=r"authorization-mode.*secure-port|secure-port.*authorization-mode") as refused:
        async with server(process=process, authorization_mode="Nobody", secure_port=70000):
            pass
    assert not str(refused.value).startswith("Error")


async def test_a_flag_that_nobody_knows_is_refused() -> None:
    with pytest.raises(StartError, match="unknown flag: --nonsense"):
        async with server(nonsense=1):
            pass


async def test_a_client_without_a_socket_goes_through_the_same_filters() -> None:
    async with server() as api:
        answer = await api.client(in_process=True).request(
            "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body={}
        )
        assert answer["status"]["userInfo"]["groups"] == ["system:masters", "system:authenticated"]
        with pytest.raises(ValueError, match="in_process needs the administrator"):
            api.as_user("ann").client(in_process=True)


async def test_the_token_and_the_ca_are_good_for_any_client() -> None:
    async with server() as api:
        place = urlsplit(api.url)
        reader, writer = await asyncio.open_connection(
            place.hostname, place.port, ssl=ssl.create_default_context(cafile=str(api.ca))
        )
        writer.write(
            b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n"
            % api.token.encode()
        )
        assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
        writer.close()


async def test_tokens_of_the_test_are_known_beside_the_servers_own(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("secret,bob,bob\n")
    async with server(token_auth_file=tokens) as api:
        review: tuple[str, str, Json] = ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert (await api.request(*review, authorization="Bearer secret")).json["status"]["userInfo"][
            "username"
        ] == "bob"
        assert (await api.request(*review)).json["status"]["userInfo"]["username"] == "pilothouse-testing"


async def test_a_watch_is_read_as_it_comes() -> None:
    async with server() as api:
        watch = await api.open("GET", f"{NAMESPACES}?watch=1")
        assert b'"type":"ADDED"' in await anext(watch.chunks())
        await watch.close()


def test_a_server_on_a_thread_serves_code_without_a_loop() -> None:
    with Server(authorization_mode="RBAC") as api:
        api.client().resource("v1", "namespaces").create({"metadata": {"name": "blocking"}})
        assert api.request("GET", f"{NAMESPACES}/blocking").status == 200
        assert api.as_user("ann").request("GET", NAMESPACES).status == 403
        with pytest.raises(Exception, match="ann"):
            api.as_user("ann").client().resource("v1", "namespaces").list()


def test_a_server_that_does_not_start_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = threading.active_count()
    with pytest.raises(StartError):
        Server(authorization_mode="Nobody").start()
    assert threading.active_count() <= before
    assert list(tmp_path.iterdir()) == []


def test_a_server_in_a_process_of_its_own_is_the_same_to_its_test() -> None:
    with Server(process=True) as api:
        assert api.request("GET", "/readyz").body == b"ok"
        assert next(api.client().resource("v1", "namespaces").items())["metadata"]["name"] == "default"


@pytest.mark.skipif(BINARY is None, reason=MISSING)
def test_kubectl_works_with_the_kubeconfig_of_a_test() -> None:
    with Server() as api:
        command = ["kubectl", "--kubeconfig", str(api.kubeconfig), "get", "namespaces", "-o", "name"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "namespace/default" in listed.split()


async def test_a_server_of_another_version_runs_in_a_process_of_its_own() -> None:
    async with server(kubernetes_version="1.35", controllers="-*") as api:
        assert api.handler is None
        assert (await api.client().get_json("/version"))["gitVersion"] == "v1.35.8"
        before = await api.snapshot()
        assert (await api.request("POST", NAMESPACES, {"metadata": {"name": "here"}})).status == 201
        await api.restore(before)
        assert (await api.request("GET", f"{NAMESPACES}/here")).status == 404


async def test_a_server_of_the_version_of_this_process_runs_in_it() -> None:
    async with server(kubernetes_version="1.36") as api:
        assert api.handler is not None


def test_an_unknown_version_is_refused_with_the_known_ones() -> None:
    with pytest.raises(StartError, match=r'Kubernetes version "1\.2" is not available; choose one of 1\.34, 1\.35, '):
        Server(kubernetes_version="1.2").start()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("abc", ["a", "b", "c"]),
        ("aab", ["a", "  … 1 more time the last line", "b"]),
        ("xababab", ["x", "a", "b", "  … 2 more times the last 2 lines"]),
        ("", []),
    ],
)
def test_repeated_lines_are_collapsed(lines: str, expected: list[str]) -> None:
    assert [*collapsed(lines)] == expected
