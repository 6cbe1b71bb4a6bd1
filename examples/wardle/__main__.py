"""An extension API server: flunders, kept in a store of their own, behind any Kubernetes API server.

python examples/wardle --data-dir /tmp/wardle        # finds the cluster through the kubeconfig
kubectl apply -f /tmp/wardle/register.json
kubectl create -f - <<< '{"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": "a"}}'
kubectl get flunders
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import logging
from pathlib import Path

from delegation import ClusterTrust, SubjectAccessReviews
from flunders import FLUNDERS, GROUP_VERSION, api_group

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.endpoints.api_groups import install_api_group, install_group_list
from pilothouse.apiserver.endpoints.install import Installer
from pilothouse.apiserver.filters.chain import ChainConfig, handler_chain
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.server.not_found import not_found
from pilothouse.apiserver.server.run import RunConfig, Runner
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.serving.certificate_files import KeyPair
from pilothouse.apiserver.serving.secure import SecureServing, SecureServingInfo
from pilothouse.apiserver.serving.server import Server
from pilothouse.apiserver.serving.tls_context import TlsFiles
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.rest.connect import connect
from pilothouse.controlplane.certificates.issue import Profile
from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate
from pilothouse.controlplane.certificates.names import ServingNames
from pilothouse.controlplane.signals import stop_on_signal
from pilothouse.machinery.objects import Json

NAMESPACE, SERVICE = "wardle", "api"
TRUST_PERIOD = 60.0


async def main(arguments: argparse.Namespace) -> None:
    stop, folder = stop_on_signal(), arguments.data_dir
    folder.mkdir(parents=True, exist_ok=True)
    async with connect(load_kubeconfig(arguments.kubeconfig)) as client:
        trust = ClusterTrust(client, folder / "trust")
        await trust.refresh()
        store = await SqliteStore.open(folder / "store")
        try:
            config = GenericConfig(store, authenticator=trust.authenticator(), authorizer=SubjectAccessReviews(client))
            await run(config, trust, arguments, stop)
        finally:
            await store.close()


async def run(config: GenericConfig, trust: ClusterTrust, arguments: argparse.Namespace, stop: asyncio.Event) -> None:
    chain = ChainConfig(config.authenticator, config.authorizer)
    prepared = wardle(config).prepare_run()
    files = TlsFiles(certificate(arguments.data_dir), client_cas=(trust.client_ca, trust.front_proxy_ca))
    secure = SecureServing(SecureServingInfo(files, arguments.host, arguments.port))
    server = Server(handler_chain(prepared.server.handler, chain), [secure.endpoint])

    def ready() -> None:
        file = arguments.data_dir / "register.json"
        file.write_text(json.dumps(registration(arguments.data_dir, server.port), indent=1))
        print(f"ready on port {server.port}: kubectl apply -f {file}", flush=True)

    background = {"cluster-trust": lambda: keep_refreshing(trust)}
    await Runner(prepared, RunConfig([server], chain.in_flight.wait, background=background)).run(stop, ready=ready)


def wardle(config: GenericConfig) -> GenericAPIServer:
    """The server with its one group. It publishes no OpenAPI schema for it, because it has none."""
    server = config.new_server("wardle-apiserver", not_found(config.lifecycle.mux_and_discovery_complete))
    registry = RegistryStore(FLUNDERS, config.store)
    group = api_group(registry)
    install_api_group(server, group, Installer(AdmissionChain(), config.authorizer))
    install_group_list(server, [group])
    server.openapi.remove(f"apis/{GROUP_VERSION}")

    async def fill_cache(context: HookContext) -> None:
        await registry.start()
        await registry.wait_ready()

    server.add_post_start_hook("fill-cache", fill_cache)
    server.add_drained(registry.stop)
    return server


async def keep_refreshing(trust: ClusterTrust) -> None:
    while True:
        await asyncio.sleep(TRUST_PERIOD)
        try:
            await trust.refresh()
        except Exception as error:
            logging.warning("cannot read whom the cluster believes: %s", error)


def certificate(folder: Path) -> KeyPair:
    pair = KeyPair(folder / "server.crt", folder / "server.key")
    ca = keep_authority("wardle-ca", folder / "ca.crt", folder / "ca.key")
    names = ServingNames(frozenset({f"{SERVICE}.{NAMESPACE}.svc"}), frozenset())
    keep_certificate(Profile("wardle", names=names), ca, pair.cert_file, pair.key_file)
    return pair


def registration(folder: Path, port: int) -> Json:
    """What makes the cluster find this server, on the same machine."""
    ca = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
    service = {"type": "ExternalName", "externalName": "localhost"}
    spec = {
        "group": GROUP_VERSION.group,
        "version": GROUP_VERSION.version,
        "service": {"namespace": NAMESPACE, "name": SERVICE, "port": port},
        "caBundle": ca,
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
    }
    name = f"{GROUP_VERSION.version}.{GROUP_VERSION.group}"
    objects: list[Json] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": NAMESPACE}, "spec": service},
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": spec},
    ]
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="wardle", description="An extension API server.")
    parser.add_argument("--kubeconfig", type=Path, help="of the cluster; the usual places if not given")
    parser.add_argument("--data-dir", type=Path, required=True, help="the home of store and certificates")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one")
    return parser.parse_args(words)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main(parse()))
