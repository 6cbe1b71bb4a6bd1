"""`pilothouse doctor apiservice [NAME]`: diagnose step by step why aggregated APIs are not available."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.arguments import CommandParser, add_kubeconfig_arguments

if TYPE_CHECKING:
    from pilothouse.cli.diagnosis.apiservice import APIServiceDoctor

_EXAMPLE = "pilothouse doctor apiservice v1beta1.metrics.k8s.io"


def main(arguments: Sequence[str]) -> int:
    """Return 0 if every check passes, 1 if a check fails, 2 if the cluster cannot be reached."""
    parsed = _parser().parse_args(arguments)
    if bool(parsed.proxy_client_cert_file) != bool(parsed.proxy_client_key_file):
        print("Error: --proxy-client-cert-file and --proxy-client-key-file must be given together", file=sys.stderr)
        return 2
    return asyncio.run(_examine(parsed))


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="pilothouse doctor", description="Diagnose a cluster.", example=_EXAMPLE)
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="COMMAND")
    apiservice = subjects.add_parser(
        "apiservice",
        help="diagnose aggregated APIs that are not available",
        description="Test every step from the aggregator to an extension API server, and report the first failure.",
        example=_EXAMPLE,
    )
    apiservice.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="APIService as VERSION.GROUP; default: every APIService of another server",
    )
    add_kubeconfig_arguments(apiservice)
    apiservice.add_argument(
        "--proxy-client-cert-file", type=Path, metavar="FILE", help="client certificate of the aggregator"
    )
    apiservice.add_argument(
        "--proxy-client-key-file", type=Path, metavar="FILE", help="private key of --proxy-client-cert-file"
    )
    return parser


async def _examine(parsed: argparse.Namespace) -> int:
    from pilothouse.apiserver.serving.tls_options import KeyPair
    from pilothouse.cli.diagnosis.apiservice import APIServiceDoctor
    from pilothouse.client.config.kubeconfig import load_kubeconfig
    from pilothouse.client.config.model import ConfigError
    from pilothouse.client.rest.connect import connect
    from pilothouse.client.rest.errors import ConnectionFailed
    from pilothouse.machinery.status_error import StatusError

    cert, key = parsed.proxy_client_cert_file, parsed.proxy_client_key_file
    try:
        async with connect(load_kubeconfig(parsed.kubeconfig, context=parsed.context)) as client:
            doctor = APIServiceDoctor(client, KeyPair(cert, key) if cert else None)
            passed = await (_examine_one(doctor, parsed.name) if parsed.name else _examine_all(doctor))
    except (ConfigError, ConnectionFailed, StatusError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0 if passed else 1


async def _examine_all(doctor: APIServiceDoctor) -> bool:
    """Print the findings of every APIService under its name. Return whether all checks passed."""
    names = await doctor.names()
    if not names:
        print("No APIService refers to another server: there is nothing to diagnose.")
    passed = True
    for name in names:
        print(f"APIService {name}")
        passed = await _examine_one(doctor, name) and passed
    return passed


async def _examine_one(doctor: APIServiceDoctor, name: str) -> bool:
    from pilothouse.cli.diagnosis.findings import FindingOutcome, render

    passed = True
    async for finding in doctor.examine(name):
        passed = passed and finding.outcome is not FindingOutcome.FAILED
        print("\n".join(render([finding])), flush=True)
    return passed
