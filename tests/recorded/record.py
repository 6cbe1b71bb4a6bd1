"""Records what a real kube-apiserver of another minor answers otherwise than v1.36.4, into tests/recorded.

record.py --kubernetes-version 1.37 --server URL --token TOKEN
record.py … versions/pods.yaml     only this scenario, or this folder; other recordings stay

Give the server the flags of replay.py's FLAGS (no controllers, no nodes) and `--token-auth-file`; the token's user is
`admin` in the group `system:masters`. Scenarios run twice; answers that differ between the runs stay as in v1.36.4.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import shutil
import ssl
import sys
import tarfile
from pathlib import Path
from typing import Any

import yaml

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

from facts import facts_of
from json_edits import edits_between
from recorded import BASE, OF_VERSIONS, differences_archive, recorded, recorded_edits
from replay import caller, scenario_files
from scenario import Call, run_scenario


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--kubernetes-version", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    args = parser.parse_args()
    if args.kubernetes_version == BASE:
        raise SystemExit(f"{BASE} is the base of all differences: its archives are written by hand")
    call = caller(args.server, _any_certificate(), args.token)
    if args.paths:
        files = recorded_edits(args.kubernetes_version) | dict(_scenarios(call, args.paths))
    else:
        files = {f"facts/{name}": edits for name, edits in _facts(call).items()} | dict(_scenarios(call, [Path()]))
    _write(differences_archive(args.kubernetes_version), {name: edits for name, edits in files.items() if edits})


def _facts(call: Call) -> dict[str, list[Any]]:
    folder, edits = recorded("facts"), {}
    for name, facts in facts_of(call).items():
        base = json.loads((folder / name).read_text()) if (folder / name).exists() else None
        edits[name] = list(edits_between(base, facts))
    return edits


def _scenarios(call: Call, paths: list[Path]) -> list[tuple[str, list[Any]]]:
    folder = recorded("scenarios")
    shutil.copytree(OF_VERSIONS, folder / OF_VERSIONS.name, dirs_exist_ok=True)
    files = scenario_files([folder / path for path in paths])
    return [(f"scenarios/{_golden(file).relative_to(folder)}", _edits(call, file)) for file in files]


def _edits(call: Call, scenario: Path) -> list[Any]:
    steps = yaml.safe_load(scenario.read_text())["steps"]
    first, second = ([step.compared for step in run_scenario(call, steps)] for _ in range(2))
    if not _golden(scenario).exists():
        for at, (one, other) in enumerate(zip(first, second, strict=True)):
            if one != other:
                raise SystemExit(f"{scenario}: step {at} has no stable answer: {one} {other}")
        return list(edits_between(None, first))
    base = json.loads(_golden(scenario).read_text())
    stable = [one if one == other else old for one, other, old in zip(first, second, base, strict=True)]
    edits = list(edits_between(base, stable))
    print(f"{scenario.stem}: {sum(one != other for one, other in zip(base, stable, strict=True))} steps differ")
    return edits


def _golden(scenario: Path) -> Path:
    return scenario.with_suffix(".golden.json")


def _write(archive: Path, files: dict[str, list[Any]]) -> None:
    """Write a reproducible archive: sorted, without times and owners."""
    with lzma.open(archive, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name in sorted(files):
            content = json.dumps(files[name], separators=(",", ":"), sort_keys=True).encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def _any_certificate() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


if __name__ == "__main__":
    main()
