"""simulated-ingress-controller: publishes one shared address for ingresses of class `simulated`.

The address is the last of the load balancer range. The class is set by field or annotation.
"""

from __future__ import annotations

from pilothouse.client.controller import Controller, enqueue_keys
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.loadbalancer.services import AddressPool
from pilothouse.controllers.resources import INGRESSES
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, annotations_of, items, name_of, namespace_of, part

CLASS = "simulated"
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_NAME = "simulated_ingress"


async def run(context: ControllerContext) -> None:
    queue, ingresses = context.queue(_NAME, str), context.informer(INGRESSES)
    wanted = [{"ip": AddressPool(context.config.simulated_load_balancer_range).of_ingresses}]
    ingresses.add_event_handler(enqueue_keys(queue))

    async def sync(key: str) -> None:
        ingress = ingresses.indexer.get_by_key(key)
        if ingress is None or not is_simulated(ingress) or is_deleting(ingress):
            return
        if addresses_of(ingress) == wanted:
            return
        objects = context.client.for_resource(INGRESSES, namespace=namespace_of(ingress))
        patch = {"status": {"loadBalancer": {"ingress": wanted}}}
        try:
            await objects.patch(name_of(ingress), patch, PatchType.MERGE, subresource="status")
        except NotFound:
            return

    await Controller(_NAME, sync, caches=(ingresses,), queue=queue, clock=context.clock).run()


def is_simulated(ingress: Json) -> bool:
    named = part(ingress, "spec").get("ingressClassName") or annotations_of(ingress).get(_CLASS_ANNOTATION)
    return named == CLASS


def addresses_of(ingress: Json) -> list[Json]:
    entries = items(ingress, "status", "loadBalancer", "ingress")
    return [{key: entry[key] for key in ("ip", "hostname") if entry.get(key)} for entry in entries]
