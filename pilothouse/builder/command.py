"""The command line of an extension server: flags, and `main`, which serves until a signal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.builder.kind import InvalidDeclaration
from pilothouse.controlplane.errors import StartFailed
from pilothouse.controlplane.options.audit import AuditOptions
from pilothouse.controlplane.options.completion import InvalidOptions
from pilothouse.controlplane.options.etcd import EtcdOptions
from pilothouse.controlplane.options.observability import LogsOptions
from pilothouse.controlplane.options.pilothouse import default_data_dir
from pilothouse.controlplane.options.serving import SecureServingOptions
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import (
    BOOL,
    STRING,
    FlagError,
    build,
    flag,
    flags_of,
    format_section,
    help_sections,
    parse,
)
from pilothouse.machinery.platform import new_event_loop

if TYPE_CHECKING:
    from pilothouse.builder.running import Ready
    from pilothouse.builder.server import APIServer


def main(server: APIServer, arguments: Sequence[str], *, standalone: bool = False) -> int:
    """Run the server and return the exit code."""
    if any(word in ("-h", "--help") for word in arguments):
        print(f"Serves the API group {server.group}.\n\n{usage()}", end="")
        return 0
    from pilothouse.apiserver import logs
    from pilothouse.builder.running import serve
    from pilothouse.controlplane.signals import stop_on_signal

    try:
        options = parse_options(arguments, group=server.group, standalone=standalone)
        logs.configure(verbosity=options.logs.verbosity, format=options.logs.logging_format)

        async def until_signal() -> None:
            await serve(server, options, stop_on_signal(), _announce)

        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(until_signal())
    except (FlagError, InvalidOptions, InvalidDeclaration, StartFailed) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _announce(ready: Ready) -> None:
    lines = [f"{ready.group} is ready.", f"  server      {ready.url}", f"  data        {ready.data_dir}"]
    if ready.kubeconfig:
        lines += [f"  kubeconfig  {ready.kubeconfig}"]
    if ready.register_file:
        lines += ["", f"kubectl apply -f {ready.register_file}"]
    print("\n".join(lines), flush=True)


@dataclass(frozen=True)
class ExtensionOptions:
    title: ClassVar[str] = "extension server"

    data_dir: str = flag("data-dir", STRING, "", "Directory of the store and the certificates.")
    kubeconfig: str = flag(
        "kubeconfig",
        STRING,
        "",
        "Kubeconfig of the cluster; if empty, the pod's service account or the default kubeconfig.",
    )
    standalone: bool = flag(
        "standalone", BOOL, False, "Serve without a cluster. The kubeconfig in --data-dir grants all permissions."
    )
    register: bool = flag(
        "register", BOOL, False, "Register in the cluster with this machine's address while the server runs."
    )
    leader_elect: bool = flag(
        "leader-elect", BOOL, False, "Run the controllers in one replica only. Enabled by default with --etcd-servers."
    )

    def validate(self) -> Iterator[str]:
        if self.standalone and (self.kubeconfig or self.register):
            yield "--standalone: a standalone server has no cluster; remove --kubeconfig and --register"


SECTIONS: dict[str, type[Any]] = {
    "extension": ExtensionOptions,
    "generic": ServerRunOptions,
    "etcd": EtcdOptions,
    "secure_serving": SecureServingOptions,
    "audit": AuditOptions,
    "logs": LogsOptions,
}


@dataclass(frozen=True)
class Options:
    """All options; complete and valid after `parse_options`."""

    extension: ExtensionOptions = field(default_factory=ExtensionOptions)
    generic: ServerRunOptions = field(default_factory=ServerRunOptions)
    etcd: EtcdOptions = field(default_factory=EtcdOptions)
    secure_serving: SecureServingOptions = field(default_factory=SecureServingOptions)
    audit: AuditOptions = field(default_factory=AuditOptions)
    logs: LogsOptions = field(default_factory=LogsOptions)
    given: frozenset[str] = frozenset()
    """Names of the flags on the command line."""

    @property
    def data_dir(self) -> Path:
        return Path(self.extension.data_dir)


def parse_options(arguments: Sequence[str], *, group: str, standalone: bool = False) -> Options:
    """Parse, complete and validate the flags. Raises FlagError, InvalidOptions."""
    parsed = parse([flag for section in SECTIONS.values() for flag in flags_of(section)], arguments)
    if parsed.positionals:
        raise FlagError(f"this server takes no arguments, got {parsed.positionals}")
    home = parsed.values.get("data-dir") or str(default_data_dir().parent / group)
    values = {"standalone": standalone, **parsed.values, "data-dir": home}
    options = Options(**{name: build(section, values) for name, section in SECTIONS.items()})
    if problems := [text for name in SECTIONS for text in getattr(options, name).validate()]:
        raise InvalidOptions(problems)
    return _completed(options, parsed.values)


def _completed(options: Options, given: dict[str, Any]) -> Options:
    """Complete the options. Servers that share an etcd elect a leader for their controllers."""
    extension = replace(
        options.extension,
        data_dir=os.path.abspath(os.path.expanduser(options.extension.data_dir)),
        leader_elect=given.get("leader-elect", options.etcd.capabilities.shared),
    )
    return replace(options, extension=extension, given=frozenset(given))


def usage() -> str:
    """Return the help of all flags."""
    return "".join(format_section(title, flags) for title, flags in help_sections(SECTIONS.values()))
