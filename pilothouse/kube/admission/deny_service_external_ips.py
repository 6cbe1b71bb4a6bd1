"""DenyServiceExternalIPs: Services keep their external IPs and cannot add new external IPs."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

_SERVICES = GroupResource("", "services")


class DenyServiceExternalIPs(Handler):
    name = "DenyServiceExternalIPs"
    operations = (Operation.CREATE, Operation.UPDATE)

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != _SERVICES or attributes.subresource:
            return
        if not _external_ips(attributes.obj) <= _external_ips(attributes.old):
            raise refused(attributes, "Use of external IPs is denied by admission control")


def _external_ips(service: Json | None) -> set[str]:
    return set(((service or {}).get("spec") or {}).get("externalIPs") or ())
