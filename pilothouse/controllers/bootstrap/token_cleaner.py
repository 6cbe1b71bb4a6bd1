"""token-cleaner-controller: deletes expired bootstrap tokens."""

from __future__ import annotations

from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller, Requeue, enqueue_keys
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.controllers.bootstrap.tokens import TOKENS, time_remaining
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import SECRETS
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of


async def run(context: ControllerContext) -> None:
    queue = context.queue("token_cleaner", str)
    secrets = context.informer(SECRETS, TOKENS)
    secrets.add_event_handler(enqueue_keys(queue))

    async def sync(key: str) -> Requeue | None:
        secret = secrets.indexer.get_by_key(key)
        if secret is None:
            return None
        remaining = time_remaining(secret, utc_now(context.clock))
        if remaining is None:
            return None
        if remaining > 0:
            return Requeue(remaining)
        await _delete(context, secret)
        return None

    await Controller("token_cleaner", sync, caches=(secrets,), queue=queue, clock=context.clock).run()


async def _delete(context: ControllerContext, secret: Json) -> None:
    secrets = context.client.for_resource(SECRETS, namespace=namespace_of(secret))
    try:
        await secrets.delete(name_of(secret), DeleteOptions(uid=uid_of(secret)))
    except (NotFound, Conflict):
        return
