"""`pilothouse doctor apiservice [NAME]`: says, step by step, why aggregated APIs are not available."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.cli.diagnosis.apiservice import APIServiceDoctor


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
    apiservice.add_argument("name", nargs="?", help="of the APIService: VERSION.GROUP; all remote ones if not given")
    apiservice.add_argument("--kubeconfig", type=Path, help="of the cluster; the usual places if not given")
    apiservice.add_argument("--context", default="", help="of the kubeconfig; its current one if not given")
    apiservice.add_argument("--proxy-client-cert-file", type=Path, help="the aggregator's, to ask servers as it does")
    apiservice.add_argument("--proxy-client-key-file", type=Path, help="the key of --proxy-client-cert-file")
    return parser


async def _examine(parsed: argparse.Namespace) -> int:
    from pilothouse.apiserver.serving.certificate_files import KeyPair
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
            well = await (_examine_one(doctor, parsed.name) if parsed.name else _examine_all(doctor))
    except (ConfigError, ConnectionFailed, StatusError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0 if well else 1


async def _examine_all(doctor: APIServiceDoctor) -> bool:
    """Print what is found out about each, under its name. Return whether all are well."""
    names = await doctor.names()
    if not names:
        print("There is no APIService of another server.")
    well = True
    for name in names:
        print(f"APIService {name}")
        well = await _examine_one(doctor, name) and well
    return well


async def _examine_one(doctor: APIServiceDoctor, name: str) -> bool:
    from pilothouse.cli.diagnosis.findings import FindingOutcome, shown

    well = True
    async for finding in doctor.examine(name):
        well = well and finding.outcome is not FindingOutcome.FAILED
        print("\n".join(shown([finding])), flush=True)
    return well
