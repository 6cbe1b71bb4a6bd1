"""bootstrap-signer-controller: signs the public cluster-info ConfigMap with every signing bootstrap token.

The holder of a token can thereby verify the cluster's address and CA, received over an untrusted channel.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

import orjson

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller
from pilothouse.controllers.bootstrap.tokens import TOKENS, BootstrapToken, signing_token
from pilothouse.controllers.context import ControllerContext, ObjectSelection
from pilothouse.controllers.resources import CONFIG_MAPS, SECRETS
from pilothouse.machinery.errors import Conflict, NotFound

NAMESPACE, NAME = "kube-public", "cluster-info"
_KEY = f"{NAMESPACE}/{NAME}"
_CONTENT = "kubeconfig"
_SIGNATURE = "jws-kubeconfig-"
_CLUSTER_INFO = ObjectSelection(NAMESPACE, f"metadata.name={NAME}")


async def run(context: ControllerContext) -> None:
    queue = context.queue("bootstrap_signer_queue", str)
    config_maps, secrets = context.informer(CONFIG_MAPS, _CLUSTER_INFO), context.informer(SECRETS, TOKENS)

    def poke(*_: object) -> None:
        queue.add(_KEY)

    config_maps.add_event_handler(ResourceEventHandlerFuncs(add=poke, update=poke))
    secrets.add_event_handler(ResourceEventHandlerFuncs(add=poke, update=poke, delete=poke))

    async def sync(key: str) -> None:
        config_map = config_maps.indexer.get_by_key(key)
        if config_map is None or _CONTENT not in (config_map.get("data") or {}):
            return
        now = utc_now(context.clock)
        tokens = [token for secret in secrets.indexer.list() if (token := signing_token(secret, now))]
        signed = signed_data(config_map["data"], tokens)
        if signed == config_map["data"]:
            return
        try:
            await context.client.for_resource(CONFIG_MAPS, namespace=NAMESPACE).update({**config_map, "data": signed})
        except (Conflict, NotFound):
            return  # the update event requeues it

    await Controller("bootstrap_signer", sync, caches=(config_maps, secrets), queue=queue, clock=context.clock).run()


def signed_data(data: dict[str, str], tokens: list[BootstrapToken]) -> dict[str, str]:
    """Return the data with the signatures of exactly these tokens."""
    kept = {key: value for key, value in data.items() if not key.startswith(_SIGNATURE)}
    return kept | {f"{_SIGNATURE}{token.id}": detached_signature(data[_CONTENT], token) for token in tokens}


def detached_signature(content: str, token: BootstrapToken) -> str:
    """Return a compact JWS with detached content (RFC 7515, appendix F)."""
    header = _base64url(orjson.dumps({"alg": "HS256", "kid": token.id}))
    signing_input = f"{header}.{_base64url(content.encode())}"
    signature = hmac.digest(token.secret.encode(), signing_input.encode(), hashlib.sha256)
    return f"{header}..{_base64url(signature)}"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
