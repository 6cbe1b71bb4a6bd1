"""/exec, /attach and /run: commands in running containers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Final

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.proxy.remote_command import SUCCESS, error_status, exit_status
from pilothouse.apiserver.serving.upgrade import is_upgrade
from pilothouse.apiserver.serving.websocket import is_websocket_request
from pilothouse.machinery import server_time
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of, part
from pilothouse.machinery.server_errors import InternalError
from pilothouse.nodes.containers.budget import KILLED, Budget, Cause, Killed, Limits
from pilothouse.nodes.containers.container import ArgumentsTooLong, Container, expand
from pilothouse.nodes.containers.process import CollectedOutput, MeteredInput, MeteredOutput, NoInput, Process
from pilothouse.nodes.containers.shell import SHELLS, CommandNotFound, run_command
from pilothouse.nodes.containers.words import NotSupported
from pilothouse.nodes.kubelet.host import Host, container_status, running_spec
from pilothouse.nodes.kubelet.logs import LogOptions, log_of, seconds_of
from pilothouse.nodes.kubelet.session import Interrupted, Nowhere, Session, Terminal, wanted_streams
from pilothouse.nodes.kubelet.spdy_sessions import spdy_session
from pilothouse.nodes.kubelet.websocket_sessions import websocket_session
from pilothouse.nodes.pods.probes import exec_probes

_PROMPT: Final = "/ # "
_INTERRUPTED: Final = 130
_MAX_ANSWER: Final = 1 << 20
_SHOWN: Final = 256
_MISSING: Final = (
    "error executing command in container: failed to exec in container: OCI runtime exec failed: exec failed: unable "
    'to start container process: exec: "{}": executable file not found in $PATH: unknown'
)
_TOO_LONG: Final = (
    "error executing command in container: failed to exec in container: OCI runtime exec failed: exec failed: unable "
    "to start container process: exec {}: argument list too long: unknown"
)


class _Reached(Exception):
    """The command of the container has come to the present."""


@dataclass(frozen=True, slots=True)
class InContainer:
    """A running container."""

    host: Host
    pod: Json
    spec: Json

    @classmethod
    def find(cls, host: Host, namespace: str, name: str, container: str) -> InContainer | Response:
        """Return the container, or an error response if the container does not run."""
        pod = host.pods.get(namespace, name)
        if pod is None:
            return Response(404, b"pod does not exist")
        spec = running_spec(pod, container)
        if spec is None:
            return Response(500, f'container not found ("{container}")'.encode())
        return cls(host, pod, spec)

    async def execute(self, command: list[str], session: Session, limits: Limits | None = None) -> Json:
        """Run the command, or answer as the behaviour says. The command ends with its container."""
        if answer := self.host.behavior(self.pod, self.spec["name"]).answer_to(command):
            await session.stdout.write(answer.stdout.encode())
            await session.stderr.write(answer.stderr.encode())
            return exit_status(answer.exit_code) if answer.exit_code else SUCCESS
        try:
            async with self.host.machine.process(limits) as budget:
                ending = asyncio.create_task(self._end_with_container(budget))
                try:
                    objects = await self.host.objects_for(self.pod, self.spec, budget)
                    if not self.host.still_runs(self.pod, self.spec["name"]):
                        raise Killed(Cause.END)
                    is_new = not self.host.containers.has_files(self.pod, self.spec)
                    container = await self.host.containers.enter(self.pod, self.spec, objects, budget)
                    if is_new and exec_probes(self.spec):
                        await self._replay(container, budget)
                    code = await run_command(_process(command, container, session, budget))
                finally:
                    ending.cancel()
                    if exec_probes(self.spec):
                        self.host.commanded(self.pod, self.spec["name"])
        except CommandNotFound as missing:
            return error_status(InternalError.of(_MISSING.format(missing)))
        except ArgumentsTooLong:
            return error_status(InternalError.of(_TOO_LONG.format(command[0][:_SHOWN])))
        except NotSupported as unknown:
            return error_status(InternalError.of(f"simulated containers do not know this of a shell: {unknown}"))
        except Interrupted:
            code = _INTERRUPTED
        except Killed:
            code = KILLED
        return exit_status(code) if code else SUCCESS

    async def _replay(self, container: Container, budget: Budget) -> None:
        """Add the files that the own command of the container has written so far. Exec probes read such files."""
        running = part(container_status(self.pod, self.spec["name"]), "state", "running")
        remaining = server_time.wall() - (seconds_of(running.get("startedAt")) or 0.0)

        async def sleep(seconds: float) -> None:
            nonlocal remaining
            remaining -= seconds
            if remaining < 0:
                raise _Reached

        inside = replace(container, environment={**container.environment})
        words = [*(self.spec.get("command") or ()), *(self.spec.get("args") or ())]
        with suppress(_Reached, CommandNotFound, NotSupported):
            if words:
                expanded = [expand(word, inside.environment) for word in words]
                nowhere = MeteredOutput(Nowhere(), budget)
                await run_command(Process(expanded, inside, NoInput(), nowhere, nowhere, sleep, budget))

    async def _end_with_container(self, budget: Budget) -> None:
        while self.host.still_runs(self.pod, self.spec["name"]):
            await self.host.pods.changed(namespace_of(self.pod), name_of(self.pod))
        budget.kill(Cause.END)

    async def attach(self, session: Session) -> Json:
        """Stream the log until the container ends; an interactive shell gets a session instead."""
        words = [*(self.spec.get("command") or ()), *(self.spec.get("args") or ())] or ["sh"]
        if self.spec.get("stdin") and len(words) == 1 and words[0].rsplit("/", 1)[-1] in SHELLS:
            return await self.execute(words, session)
        log = await log_of(self.host, self.pod, self.spec, LogOptions(follow=True))
        if not isinstance(log, str):
            async for piece in log:
                await session.stdout.write(piece.replace(b"\n", b"\r\n") if session.tty else piece)
        return SUCCESS


def _process(command: list[str], container: Container, session: Session, budget: Budget) -> Process:
    stdin, stdout = MeteredInput(session.stdin, budget), MeteredOutput(session.stdout, budget)

    async def sleep(seconds: float) -> None:
        await budget.outside(asyncio.sleep(seconds))

    if not session.tty:
        stderr = MeteredOutput(session.stderr, budget)
        return Process(command, container, stdin, stdout, stderr, sleep, budget)
    terminal = Terminal(stdin, stdout)
    return Process(command, container, terminal, terminal, terminal, sleep, budget, _PROMPT)


async def exec_or_attach(host: Host, request: Request, action: str, place: list[str]) -> Response:
    """`place`: namespace, pod name, optional UID, container."""
    streams = wanted_streams(request)
    if streams is None:
        return Response(400, b"you must specify at least 1 of stdin, stdout, stderr")
    container = InContainer.find(host, place[0], place[1], place[-1])
    if isinstance(container, Response):
        return container
    if not is_upgrade(request):
        return Response(400, b"Upgrade request required")
    command = request.query.get("command") or []
    if action == "exec" and not command:
        return Response(400, b"you must specify a command")

    async def work(session: Session) -> Json:
        return await (container.attach(session) if action == "attach" else container.execute(command, session))

    start = websocket_session if is_websocket_request(request) else spdy_session
    return start(request, streams, work)


async def run_once(host: Host, request: Request, place: list[str]) -> Response:
    """Return the whole output of a command as one response."""
    container = InContainer.find(host, place[0], place[1], place[-1])
    if isinstance(container, Response):
        return container
    written = CollectedOutput(_MAX_ANSWER)
    session = Session(NoInput(), written, written, tty=False)
    status = await container.execute(request.whole_param("cmd").split(" "), session, Limits(written=_MAX_ANSWER))
    return Response(200 if status["status"] == "Success" else 500, bytes(written.data))
