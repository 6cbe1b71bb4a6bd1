"""`pilothouse serve`: parse the options, then run the server until a signal stops it."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pilothouse.cli.version import requested_version, version_line
from pilothouse.controlplane.options.completion import CompletedOptions, InvalidOptions, complete
from pilothouse.controlplane.options.options import Options, shown_flags
from pilothouse.controlplane.options.pilothouse import choose_release
from pilothouse.machinery.flags import FlagError
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.platform import assignment_command, notify_service_manager

if TYPE_CHECKING:
    from pilothouse.controlplane.run import Announcement

_log = logging.getLogger(__name__)

_USAGE = """Runs the Kubernetes API server: aggregator, kube and extensions, over an embedded store or etcd.

Usage:
  pilothouse serve [flags]
"""


def main(arguments: Sequence[str], adjust: Callable[[Options], Options] = lambda options: options) -> int:
    """Run the server until a signal stops it. Return the exit code.

    `adjust` changes the parsed options before defaults are filled in.
    """
    if any(word in ("-h", "--help") for word in arguments):
        from pilothouse.controlplane.options.options import usage_sections

        print("\n".join([_USAGE, *usage_sections()]), end="")
        return 0
    try:
        choose_release(arguments)
        version = requested_version(arguments, version_line)
        if version is not None:
            print(version)
            return 0
        options = _options([word for word in arguments if not word.startswith("--version=")], adjust)
    except (FlagError, InvalidOptions) as error:
        return _print_error(error)
    return _serve(options)


def _options(arguments: Sequence[str], adjust: Callable[[Options], Options]) -> CompletedOptions:
    from pilothouse.apiserver import logs

    options = Options.parse(arguments)
    logs.configure(verbosity=options.logs.verbosity, format=options.logs.logging_format)
    if _log.isEnabledFor(logs.v(1)):
        for name, value in shown_flags(arguments):
            _log.log(logs.v(1), "FLAG: --%s=%s", name, quote(value))
    return complete(adjust(options)).validate()


def _serve(options: CompletedOptions) -> int:
    gc.disable()  # until ready: objects made during start-up are permanent, so collections would only cost time
    from pilothouse.controlplane.errors import StartFailed
    from pilothouse.controlplane.run import run
    from pilothouse.machinery import release

    _log.info("Version: %s", release.current().git_version)
    try:
        announce = _announcement(options)
        if options.pilothouse.worker_count > 1:
            from pilothouse.controlplane.workers.run import run_workers

            run_workers(options, announce)
        else:
            run(options, announce)
    except StartFailed as error:
        return _print_error(error)
    return 0


def _announcement(options: CompletedOptions) -> Callable[[Announcement], None]:
    """Return the callback for readiness. Raises StartFailed if --console is set and the package has no page."""
    if not options.pilothouse.console:
        return _announce
    from pilothouse.console.page import require_page

    require_page()
    return partial(_announce_with_console, options.pilothouse.console_port)


def _announce(ready: Announcement) -> None:
    from pilothouse.controlplane.run import collect_garbage_from_now_on

    collect_garbage_from_now_on()
    lines = [
        f"{version_line()} is ready.",
        f"  server      {ready.url}",
        f"  data        {ready.data_dir}",
        f"  storage     {ready.storage}",
        f"  kubeconfig  {ready.kubeconfig}",
        "",
        assignment_command("KUBECONFIG", ready.kubeconfig),
    ]
    print("\n".join(lines), flush=True)
    _notify_service_manager()


def _notify_service_manager() -> None:
    """Send READY=1 to systemd (Type=notify), if systemd started the server."""
    if not (address := os.environ.get("NOTIFY_SOCKET", "")):
        return
    try:
        notify_service_manager(address, b"READY=1\n")
    except OSError as error:
        _log.error("Unable to send systemd daemon successful start message: %s", error)


def _announce_with_console(port: int, ready: Announcement) -> None:
    from pilothouse.client.config.kubeconfig import load_kubeconfig
    from pilothouse.console.server import start_in_background

    _announce(ready)
    try:
        address = start_in_background(load_kubeconfig(ready.kubeconfig), port=port)
    except OSError as error:
        print(f"Error: the console cannot listen on port {port} (--console-port): {error}", file=sys.stderr, flush=True)
        return
    print(f"Console: {address}", flush=True)


def _print_error(error: Exception) -> int:
    print(f"Error: {error}", file=sys.stderr)
    return 1
