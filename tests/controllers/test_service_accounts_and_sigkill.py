"""A server that is killed while it fills namespaces and token secrets ends where it would have ended without that."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from awaiting import until, until_gone
from serving_process import ServeProcess

from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.machinery.objects import Json

NAMESPACES = [f"ns-{number}" for number in range(12)]


def client(server: ServeProcess) -> Client:
    return connect(load_kubeconfig(server.data_dir / "admin.kubeconfig"))


def token_secret(account: str) -> Json:
    meta = {"name": f"of-{account}", "annotations": {"kubernetes.io/service-account.name": account}}
    return {"metadata": meta, "type": "kubernetes.io/service-account-token"}


async def fill(own: Client, namespace: str) -> None:
    """One account with a token, and one whose account goes away."""
    accounts = own.resource("v1", "serviceaccounts", namespace=namespace)
    secrets = own.resource("v1", "secrets", namespace=namespace)
    await own.resource("v1", "namespaces").create({"metadata": {"name": namespace}})
    for name in ("robot", "ghost"):
        await accounts.create({"metadata": {"name": name}})
        await secrets.create(token_secret(name))
    await accounts.delete("ghost")


async def until_filled(own: Client, namespace: str) -> None:
    secrets = own.resource("v1", "secrets", namespace=namespace)
    await until(own.resource("v1", "serviceaccounts", namespace=namespace), "default")
    await until(own.resource("v1", "configmaps", namespace=namespace), "kube-root-ca.crt")
    await until(secrets, "of-robot", lambda secret: (secret.get("data") or {}).get("token"))
    await until_gone(secrets, "of-ghost")


async def test_namespaces_and_tokens_are_completed_after_a_kill(tmp_path: Path) -> None:
    server = ServeProcess(tmp_path / "data")
    try:
        async with client(server) as own:
            await asyncio.gather(*(fill(own, namespace) for namespace in NAMESPACES))
            server.signal(signal.SIGKILL)
        server.wait()
        server.close()
        server = ServeProcess(tmp_path / "data")
        async with client(server) as own:
            await asyncio.gather(*(until_filled(own, namespace) for namespace in NAMESPACES))
    finally:
        server.close()
