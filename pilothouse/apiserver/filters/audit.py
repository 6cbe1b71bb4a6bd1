"""Audit: log requests by the audit policy when they arrive, when the response starts, and at the end."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.audit.backends import EVENTS, LEVELS, REJECTED
from pilothouse.apiserver.audit.context import AuditContext, AuditSink, event_of
from pilothouse.apiserver.audit.policy import LEVELS as LEVEL_NAMES
from pilothouse.apiserver.audit.policy import AuditPolicy, Level
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import attributes_of
from pilothouse.apiserver.http import Filter, Handler, Request, Response, Upgrade
from pilothouse.apiserver.streams import UntilCompleted
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Unauthorized
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import StatusError

_NAMES = {level: (name,) for name, level in LEVEL_NAMES.items()}
_NOBODY = User("")
_CLOSED_EARLY = {"status": "Success", "message": "Connection closed early", "code": 200}


@dataclass(frozen=True, slots=True)
class Auditing:
    policy: AuditPolicy
    sink: AuditSink


def with_audit(auditing: Auditing | None) -> Filter:
    """Audit requests by the policy. A no-op without auditing."""

    def wrap(handler: Handler) -> Handler:
        async def audit(request: Request) -> Response:
            assert auditing is not None
            context = _new_context(request, auditing)
            if context is None:
                return await handler(request)
            if not await _stage(request, context, "RequestReceived"):
                REJECTED.inc()
                raise InternalError.of("failed to store audit event")
            request.audit = context
            return await _answered(request, context, handler)

        return audit if auditing is not None else handler

    return wrap


def with_failed_authentication_audit(auditing: Auditing | None) -> Filter:
    """Audit failed authentication. Wraps the authentication filter."""

    def wrap(handler: Handler) -> Handler:
        async def audit(request: Request) -> Response:
            try:
                return await handler(request)
            except Unauthorized as error:
                assert auditing is not None
                if request.user is None and (context := _new_context(request, auditing)) is not None:
                    tried = ", ".join(_methods(request))
                    context.log_status(error.status | {"message": f"Authentication failed, attempted: {tried}"})
                    await _stage(request, context, "ResponseStarted")
                raise

        return audit if auditing is not None else handler

    return wrap


def _methods(request: Request) -> list[str]:
    """Return the authentication methods of the request: bearer, basic, x509 or none."""
    shown = ["bearer"] if request.header(b"authorization").lower().startswith("bearer ") else []
    shown += ["basic"] if request.header(b"authorization").lower().startswith("basic ") else []
    shown += ["x509"] if request.transport is not None and request.transport.get_extra_info("peercert") else []
    return shown or ["none"]


def _new_context(request: Request, auditing: Auditing) -> AuditContext | None:
    attributes = attributes_of(request)
    if attributes.user is None:
        attributes.user = _NOBODY
    decision = auditing.policy.decide(attributes)
    LEVELS.inc(_NAMES[decision.level])
    if decision.level is Level.NONE:
        return None
    return AuditContext(decision, event_of(request, decision.level), auditing.sink)


async def _stage(request: Request, context: AuditContext, stage: str) -> bool:
    EVENTS.inc(())
    return await context.stage(stage, request.annotations.at(*context.annotation_levels))


async def _complete(request: Request, context: AuditContext) -> None:
    """Log the last stage, which includes the response."""
    EVENTS.inc(())
    await context.response_stage("ResponseComplete", request.annotations.at(*context.annotation_levels))


async def _answered(request: Request, context: AuditContext, handler: Handler) -> Response:
    try:
        response = await handler(request)
    except StatusError as error:
        await _failed(request, context, error)
        raise
    except Exception as error:
        message = f"APIServer panic'd: {error}"
        context.log_status({"status": "Failure", "reason": "InternalError", "message": message, "code": 500})
        await _stage(request, context, "Panic")
        raise
    except BaseException:
        context.log_status(_CLOSED_EARLY)
        await _stage(request, context, "ResponseComplete")
        raise
    return await _logged(request, context, response)


async def _failed(request: Request, context: AuditContext, error: StatusError) -> None:
    context.log_status(error.status)
    if request.info.is_long_running:
        await _stage(request, context, "ResponseStarted")
    await _stage(request, context, "ResponseComplete")


async def _logged(request: Request, context: AuditContext, response: Response) -> Response:
    if not context.has_status:
        context.log_status({"code": 101 if response.upgrade else response.status})
    if request.info.is_long_running:
        await _stage(request, context, "ResponseStarted")
    if response.upgrade is not None:
        response.upgrade = _until_closed(request, context, response.upgrade)
    elif isinstance(response.body, bytes):
        await _complete(request, context)
    else:
        response.body = UntilCompleted(response.body, lambda: _complete(request, context))
    return response


def _until_closed(request: Request, context: AuditContext, upgrade: Upgrade) -> Upgrade:
    async def run(transport: asyncio.Transport, data: bytes) -> None:
        try:
            await upgrade(transport, data)
        finally:
            await _stage(request, context, "ResponseComplete")

    return run
