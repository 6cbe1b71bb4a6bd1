"""`pilothouse check`: check the integrity of a store."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.arguments import CommandParser, add_etcd_arguments, add_server_arguments, run_command

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.backup.model import Source
    from pilothouse.apiserver.storage.encryption.configuration import Encryption
    from pilothouse.cli.diagnosis.findings import Finding
    from pilothouse.cli.stores.entry_checks import EntryChecks


def main(arguments: Sequence[str]) -> int:
    """Return 0 without faults, 1 with faults, 2 if the store cannot be read."""
    return run_command(_check(_parser().parse_args(arguments)))


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="pilothouse check",
        description="Read every key of a store and report faults. Changes nothing; the server may run.",
        example="pilothouse check --data-dir ~/.local/share/pilothouse",
    )
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="data directory of a running or stopped server")
    add_etcd_arguments(parser)
    add_server_arguments(parser)
    help_ = "EncryptionConfiguration of the server; needed to read encrypted values"
    parser.add_argument("--encryption-provider-config", type=Path, metavar="FILE", help=help_)
    parser.set_defaults(skip_damaged=True)  # damaged keys are reported by file_findings
    return parser


async def _check(parsed: argparse.Namespace) -> int:
    from pilothouse.cli.diagnosis.findings import FindingOutcome, render
    from pilothouse.cli.stores.entry_checks import EntryChecks, ValueReader
    from pilothouse.cli.stores.opening import opened_source

    faults = 0
    async with opened_source(parsed) as source:
        reader = ValueReader(await _encryption(parsed.encryption_provider_config), source.prefix)
        checks = EntryChecks(reader, prefix=source.prefix, revision=source.revision)
        async for finding in _findings(parsed, source, checks):
            faults += finding.outcome is FindingOutcome.FAILED
            print("\n".join(render([finding])), flush=True)
    summary = f"{faults} fault{'' if faults == 1 else 's'}" if faults else "no faults"
    print(f"{checks.seen} keys at revision {source.revision}: {summary}")
    return 1 if faults else 0


async def _findings(parsed: argparse.Namespace, source: Source, checks: EntryChecks) -> AsyncIterator[Finding]:
    from pilothouse.cli.stores.backend_checks import cache_findings, file_findings
    from pilothouse.cli.stores.opening import ServedSource
    from pilothouse.controlplane.data_dir import STORE

    if parsed.data_dir is not None and not parsed.etcd_servers:
        for finding in file_findings(parsed.data_dir / STORE):
            yield finding
    async for entry in source.entries():
        for finding in await checks.take(entry):
            yield finding
    for finding in checks.summary():
        yield finding
    if isinstance(source, ServedSource):
        async for finding in cache_findings(source, checks.places):
            yield finding


async def _encryption(path: Path | None) -> Encryption | None:
    """Raises OSError, ValueError."""
    if path is None:
        return None
    from pilothouse.apiserver.storage.encryption.configuration import build_encryption, read_configuration

    encryption = build_encryption(read_configuration(path))
    for provider in encryption.providers:
        await provider.check()
    return encryption
