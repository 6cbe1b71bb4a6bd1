"""Arguments of all commands but `serve`: parser with suggestions and examples, flags that locate stores and keys.

Imports only small modules, so that `--help` is fast.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pilothouse.machinery import release
from pilothouse.machinery.flags import did_you_mean, invalid_value

if TYPE_CHECKING:
    from pilothouse.controlplane.shared_keys.directory import KeyDirectory
    from pilothouse.controlplane.shared_keys.stored import StoredKeys


_EXPECTED: dict[Any, str] = {int: "a whole number", float: "a number"}


class CommandParser(argparse.ArgumentParser):
    """An argparse parser whose errors name the argument, the problem and the next step."""

    def __init__(self, *, example: str = "", **kwargs: Any) -> None:
        """Create a parser. Help and the error for a missing subcommand show `example`, a complete command line."""
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)
        self.epilog = f"Example:\n  {example}" if example else None

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        words = list(sys.argv[1:] if args is None else args)
        commands = [
            name
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for name in action.choices
        ]
        own_words = _words_before_subcommand(words) if commands else words
        if commands and not words:
            self.print_help(sys.stderr)
            self.exit(2, f'\nError: "{self.prog}" needs a command: {", ".join(commands)}\n')
        self._refuse_unknown_flags(own_words)
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"Error: {message}\n")

    def _refuse_unknown_flags(self, words: Iterable[str]) -> None:
        """Exit with an error for an unknown flag.

        argparse reports unknown flags last, so a misspelt required flag would be reported as missing.
        """
        known = [flag for action in self._actions for flag in action.option_strings]
        for word in words:
            if word == "--":
                return
            name = word.partition("=")[0]
            if name.startswith("--") and " " not in name and not any(flag.startswith(name) for flag in known):
                self.error(f"unknown flag: {name}{did_you_mean(name, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = list(map(str, action.choices))
        hint = did_you_mean(str(value), choices)
        if isinstance(action, argparse._SubParsersAction):
            self.error(f'unknown command "{value}" for "{self.prog}"{hint or "; commands: " + ", ".join(choices)}')
        self.error(invalid_value(value, _name(action), f"one of {', '.join(choices)}") + hint)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            self.error(invalid_value(arg_string, _name(action), _EXPECTED.get(action.type, error.message)))


def _words_before_subcommand(words: Sequence[str]) -> Sequence[str]:
    """Return the words before the subcommand."""
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    return words[:at]


def _name(action: argparse.Action) -> str:
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def add_output(parser: argparse.ArgumentParser) -> None:
    help_ = "format of the report (default: text)"
    parser.add_argument("-o", "--output", choices=("text", "json", "junit", "github"), default="text", help=help_)


def add_kubernetes_version(parser: argparse.ArgumentParser) -> None:
    """Add --kubernetes-version. Parsing it chooses the release of this process."""

    def choose(name: str) -> str:
        try:
            return release.choose(name).name
        except release.UnknownRelease:
            raise argparse.ArgumentTypeError(f"one of {', '.join(release.RELEASES)}") from None
        except release.ReleaseAlreadyChosen as error:
            parser.error(str(error))

    help_ = f"Kubernetes version to implement: {', '.join(release.RELEASES)} (default: {release.DEFAULT})"
    parser.add_argument("--kubernetes-version", type=choose, metavar="VERSION", help=help_)


def add_kubernetes_versions(parser: argparse.ArgumentParser) -> None:
    """Add --kubernetes-version with one or several versions. Parsing one version chooses it for this process."""

    def read(text: str) -> list[str]:
        try:
            names = list(dict.fromkeys(release.release_of(name).name for name in text.split(",")))
            return [release.choose(names[0]).name] if len(names) == 1 else names
        except release.UnknownRelease:
            raise argparse.ArgumentTypeError(f"one of {', '.join(release.RELEASES)}") from None
        except release.ReleaseAlreadyChosen as error:
            parser.error(str(error))

    help_ = "Kubernetes versions to check with, separated by commas, each with its own results: "
    help_ += f"{', '.join(release.RELEASES)} (default: {release.DEFAULT})"
    parser.add_argument("--kubernetes-version", type=read, default=[], metavar="VERSIONS", help=help_)


def add_kubeconfig_arguments(
    parser: argparse._ActionsContainer, exclusive: argparse._ActionsContainer | None = None
) -> None:
    """Add --kubeconfig (to the mutually `exclusive` group, if given) and --context."""
    add_kubeconfig(exclusive or parser)
    parser.add_argument("--context", default="", help="context in the kubeconfig; default: the current context")


def add_kubeconfig(parser: argparse._ActionsContainer) -> None:
    help_ = "kubeconfig file of the cluster; default: $KUBECONFIG, then ~/.kube/config"
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help=help_)


def add_etcd_arguments(parser: argparse.ArgumentParser, *, servers: bool = True) -> None:
    if servers:
        parser.add_argument(
            "--etcd-servers", default="", metavar="URLS", help="URLs of the etcd members, comma separated"
        )
    parser.add_argument("--etcd-cafile", default="", metavar="FILE", help="CA certificate of the etcd members")
    parser.add_argument("--etcd-certfile", default="", metavar="FILE", help="client certificate for etcd")
    parser.add_argument("--etcd-keyfile", default="", metavar="FILE", help="private key of --etcd-certfile")
    parser.add_argument("--etcd-prefix", default="/registry", help="prefix of every key (default: /registry)")


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --kubeconfig and --context, which locate a running server."""
    add_kubeconfig_arguments(parser.add_argument_group("running server (the user must be in system:masters)"))


def run_command(command: Coroutine[Any, Any, int]) -> int:
    """Run the command and return its exit code. A refused command prints one line on stderr and returns 2."""
    import asyncio

    from pilothouse.client.config.model import ConfigError
    from pilothouse.controlplane.data_dir import DataDirError
    from pilothouse.controlplane.errors import StartFailed
    from pilothouse.machinery.status_error import PilothouseError

    try:
        return asyncio.run(command)
    except (ConfigError, DataDirError, OSError, PilothouseError, StartFailed, ValueError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="data directory of a server; default: the data directory of 'pilothouse serve'",
    )


def data_dir_of(parsed: argparse.Namespace) -> Path:
    from pilothouse.controlplane.options.pilothouse import default_data_dir

    return Path(parsed.data_dir or default_data_dir()).expanduser().absolute()


@asynccontextmanager
async def stored_keys(parsed: argparse.Namespace) -> AsyncIterator[StoredKeys]:
    """Open the keys in etcd for the duration of the block. Raises CertificateError, StorageError, OSError,
    StartFailed."""
    from pilothouse.cli.stores.opening import opened_etcd
    from pilothouse.controlplane.certificates.paths import CertificateError
    from pilothouse.controlplane.shared_keys.stored import StoredKeys

    if not parsed.etcd_servers:
        raise CertificateError("the keys of this cluster are in etcd: name the etcd with --etcd-servers")
    async with opened_etcd(parsed, parsed.etcd_servers.split(","), parsed.etcd_prefix) as store:
        yield StoredKeys(store, parsed.etcd_prefix, data_dir_of(parsed))


@asynccontextmanager
async def shared_keys(parsed: argparse.Namespace) -> AsyncIterator[StoredKeys | KeyDirectory]:
    """Open the keys: in --pki-dir, in the directory noted in --data-dir, in etcd, or in --data-dir itself."""
    from pilothouse.controlplane.shared_keys.directory import KeyDirectory
    from pilothouse.controlplane.shared_keys.source import noted_directory

    data_dir = data_dir_of(parsed)
    if directory := KeyDirectory(parsed.pki_dir) if parsed.pki_dir else noted_directory(data_dir):
        yield directory
    elif (data_dir / "cluster.key").exists():
        async with stored_keys(parsed) as stored:
            yield stored
    else:
        yield KeyDirectory(data_dir / "pki")
