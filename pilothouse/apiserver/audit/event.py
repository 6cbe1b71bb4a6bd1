"""The initial part of an audit event, known before the outcome of the request."""

from __future__ import annotations

from pilothouse.apiserver.audit.policy import LEVELS, Level
from pilothouse.apiserver.authn.user import user_info
from pilothouse.apiserver.http import Request, source_ips
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now_micro

_LONGEST_USER_AGENT = 1024
_LEVEL_NAMES = {level: name for name, level in LEVELS.items()}


def event_of(request: Request, level: Level) -> Json:
    event: Json = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": _LEVEL_NAMES[level],
        "auditID": request.audit_id,
        "stage": "",
        "requestURI": request.path + (f"?{request.query_string}" if request.query_string else ""),
        "verb": request.info.verb,
        "user": user_info(request.user) if request.user is not None else {},
        "sourceIPs": source_ips(request),
        "userAgent": _user_agent(request),
        "requestReceivedTimestamp": now_micro(),
    }
    if request.info.is_resource:
        info = request.info
        fields = {
            "resource": info.resource,
            "namespace": info.namespace,
            "name": info.name,
            "apiGroup": info.group,
            "apiVersion": info.version,
            "subresource": info.subresource,
        }
        event["objectRef"] = {name: value for name, value in fields.items() if value}
    return event


def _user_agent(request: Request) -> str:
    agent = request.header(b"user-agent")
    return agent if len(agent) <= _LONGEST_USER_AGENT else f"{agent[:_LONGEST_USER_AGENT]}...TRUNCATED"
