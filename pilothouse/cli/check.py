"""`pilothouse check`: whether all that a store holds can be read, and agrees."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.stores.arguments import add_etcd_arguments, add_kubeconfig_arguments, finished

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.backup.model import Source
    from pilothouse.apiserver.storage.encryption.configuration import Encryption
    from pilothouse.cli.diagnosis.findings import Finding
    from pilothouse.cli.stores.checking.entries import EntryChecks


def main(arguments: Sequence[str]) -> int:
    """0 if everything is well, 1 if something is not, 2 if the store can not be read."""
    return finished(_check(_parser().parse_args(arguments)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pilothouse check",
        description="Read all that a store holds and say what is wrong with it. Nothing is changed; a server may run.",
    )
    parser.add_argument("--data-dir", type=Path, help="of a server that runs, or not")
    add_etcd_arguments(parser)
    add_kubeconfig_arguments(parser)
    help_ = "the server's EncryptionConfiguration, so that encrypted values are read, too"
    parser.add_argument("--encryption-provider-config", type=Path, metavar="FILE", help=help_)
    return parser


async def _check(parsed: argparse.Namespace) -> int:
    from pilothouse.cli.diagnosis.findings import FindingOutcome, shown
    from pilothouse.cli.stores.checking.entries import EntryChecks
    from pilothouse.cli.stores.checking.values import ValueReader
    from pilothouse.cli.stores.opening import opened_source

    faults = 0
    async with opened_source(parsed) as source:
        reader = ValueReader(await _encryption(parsed.encryption_provider_config), source.prefix)
        checks = EntryChecks(reader, prefix=source.prefix, revision=source.revision)
        async for finding in _findings(parsed, source, checks):
            faults += finding.outcome is FindingOutcome.FAILED
            print("\n".join(shown([finding])), flush=True)
    print(f"{checks.seen} keys at revision {source.revision}: {f'{faults} faults' if faults else 'all is well'}")
    return 1 if faults else 0


async def _findings(parsed: argparse.Namespace, source: Source, checks: EntryChecks) -> AsyncIterator[Finding]:
    from pilothouse.cli.stores.checking.caches import cache_findings
    from pilothouse.cli.stores.checking.database import file_findings
    from pilothouse.cli.stores.served import ServedSource
    from pilothouse.controlplane.data_dir import STORE

    if parsed.data_dir is not None and not parsed.etcd_servers:
        for finding in file_findings(parsed.data_dir / STORE):
            yield finding
    async for entry in source.entries():
        for finding in await checks.take(entry):
            yield finding
    for finding in checks.at_the_end():
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
