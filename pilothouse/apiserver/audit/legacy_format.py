"""Events as the lines that were written before there was a JSON form."""

from __future__ import annotations

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json


def legacy_line(event: Json) -> str:
    user, acting = event.get("user") or {}, event.get("impersonatedUser")
    reference, status = event.get("objectRef") or {}, event.get("responseStatus")
    fields = {
        "id": event["auditID"],
        "stage": event["stage"],
        "ip": next(iter(event.get("sourceIPs") or ()), "<unknown>"),
        "method": event["verb"],
        "user": user.get("username") or "<none>",
        "groups": _listed(user.get("groups")) or "<none>",
        "as": acting["username"] if acting else "<self>",
        "asgroups": (_listed(acting.get("groups")) if acting else "") or "<lookup>",
        "user-agent": event.get("userAgent") or "",
        "namespace": reference.get("namespace") or "<none>",
        "uri": event["requestURI"],
        "response": str(status["code"]) if status else "<deferred>",
    }
    said = " ".join(f"{name}={quote(value)}" for name, value in fields.items())
    return f"{event['requestReceivedTimestamp']} AUDIT: {said}"


def _listed(names: list[str] | None) -> str:
    return ",".join(quote(name) for name in names or ())
