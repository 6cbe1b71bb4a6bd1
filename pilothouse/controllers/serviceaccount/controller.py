"""serviceaccount-controller: creates the service account `default` in every active namespace."""

from __future__ import annotations

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.controller import Controller, enqueue_keys, enqueue_mapped
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.namespace_state import is_active, is_refusal_of_terminating_namespace
from pilothouse.controllers.resources import NAMESPACES, SERVICE_ACCOUNTS
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, namespace_of
from pilothouse.machinery.status_error import StatusError

DEFAULT = "default"


async def run(context: ControllerContext) -> None:
    queue = context.queue("serviceaccount", str)
    accounts, namespaces = context.informer(SERVICE_ACCOUNTS), context.informer(NAMESPACES)
    deletions = enqueue_mapped(queue, lambda account: (namespace_of(account),)).on_delete
    caches = (
        accounts.add_event_handler(ResourceEventHandlerFuncs(delete=deletions)),
        namespaces.add_event_handler(enqueue_keys(queue)),
    )

    async def sync(namespace: str) -> None:
        obj = namespaces.indexer.get_by_key(namespace)
        if obj is not None and is_active(obj) and f"{namespace}/{DEFAULT}" not in accounts.indexer:
            account: Json = {"metadata": {"name": DEFAULT, "namespace": namespace}}
            try:
                await context.client.for_resource(SERVICE_ACCOUNTS, namespace=namespace).create(account)
            except AlreadyExists:
                return
            except StatusError as error:
                if not is_refusal_of_terminating_namespace(error):
                    raise

    await Controller("serviceaccount", sync, caches=caches, workers=1, queue=queue, clock=context.clock).run()
