"""`pilothouse doctor apiservice NAME`: says, step by step, why an aggregated API is not available."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str]) -> int:
    """0 if everything is well, 1 if something is not, 2 if the cluster can not be asked."""
    parsed = _parser().parse_args(arguments)
    if bool(parsed.proxy_client_cert_file) != bool(parsed.proxy_client_key_file):
        print("Error: --proxy-client-cert-file and --proxy-client-key-file go together", file=sys.stderr)
        return 2
    return asyncio.run(_examine(parsed))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pilothouse doctor", description="Find out what is wrong.")
    patients = parser.add_subparsers(dest="patient", required=True)
    apiservice = patients.add_parser("apiservice", help="an aggregated API", description="Why is it not available?")
    apiservice.add_argument("name", help="of the APIService: VERSION.GROUP")
    apiservice.add_argument("--kubeconfig", type=Path, help="of the cluster; the usual places if not given")
    apiservice.add_argument("--context", default="", help="of the kubeconfig; its current one if not given")
    apiservice.add_argument("--proxy-client-cert-file", type=Path, help="the aggregator's, to ask servers as it does")
    apiservice.add_argument("--proxy-client-key-file", type=Path, help="the key of --proxy-client-cert-file")
    return parser


async def _examine(parsed: argparse.Namespace) -> int:
    from pilothouse.apiserver.serving.certificate_files import KeyPair
    from pilothouse.cli.diagnosis.apiservice import APIServiceDoctor
    from pilothouse.cli.diagnosis.findings import FindingOutcome, shown
    from pilothouse.client.config.kubeconfig import load_kubeconfig
    from pilothouse.client.config.model import ConfigError
    from pilothouse.client.rest.connect import connect
    from pilothouse.client.rest.errors import ConnectionFailed
    from pilothouse.machinery.status_error import StatusError

    cert, key = parsed.proxy_client_cert_file, parsed.proxy_client_key_file
    well = True
    try:
        async with connect(load_kubeconfig(parsed.kubeconfig, context=parsed.context)) as client:
            async for finding in APIServiceDoctor(client, KeyPair(cert, key) if cert else None).examine(parsed.name):
                well = well and finding.outcome is not FindingOutcome.FAILED
                print("\n".join(shown([finding])), flush=True)
    except (ConfigError, ConnectionFailed, StatusError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0 if well else 1
