"""Replays recorded scenarios against a server and compares its answers with a real kube-apiserver's.

replay.py                          all of tests/recorded, on a server of its own
replay.py -v FOLDER|FILE …         these (of tests/recorded: kinds/, kinds/jobs.yaml), with every difference
replay.py --floor 1534             fails if fewer steps pass; without it, if any step differs
replay.py --newer FOLDER           what is in the folder and not in tests/recorded; reported, never failed
replay.py --workers 2              on a server of several processes
replay.py --kubernetes-version 1.35  on a server of this version, with the answers of a real one of that version
replay.py --kubeconfig FILE        on a server that runs already

A scenario is a YAML file whose `steps` are run in order in a fresh namespace; `.golden.json` beside it has the answers.
    - GET: /api/v1/namespaces/{ns}/configmaps/a     # or POST PUT PATCH DELETE
      headers: {Accept: application/json}           # optional
      as: {user: alice, groups: [dev]}              # optional: impersonation headers
      body: {...}                                   # JSON body (a string is sent as it is)
      type: application/merge-patch+json            # Content-Type, default application/json
      save: {rv: metadata.resourceVersion}          # capture for later {rv}
      until: {status.phase: Active}                 # poll until these fields match, 10 s at most
      watch: true                                   # read the stream to its end (use timeoutSeconds)
      compare: status | subset | full               # default full: status code and whole body; subset: fields in `pick`
"""

from __future__ import annotations

import argparse
import json
import ssl
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

from comparison import differences, short, without
from recorded import BASE, recorded
from scenario import METHODS, Call, Reply, run_scenario

from pilothouse.testing import Server

TOKEN = "admintoken"
FLAGS: dict[str, Any] = {
    "authorization_mode": "RBAC",
    "service_cluster_ip_range": "10.0.0.0/16",
    "disable_admission_plugins": "ServiceAccount",
    "controllers": "-*",
}
"""The recorded server's."""
_TIMEOUT = 30.0
_SHOWN_DIFFERENCES = 12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--floor", type=int)
    parser.add_argument("--newer", type=Path)
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--workers", default="1")
    parser.add_argument("--kubernetes-version", default=BASE)
    parser.add_argument("--ignore", action="append", default=[], help="a key to leave out of every comparison")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    version = args.kubernetes_version
    files = _newer_in(args.newer.absolute()) if args.newer else list(scenario_files(args.paths or [Path()], version))
    if not files:
        print("nothing to replay")
        return 0
    with server_of(version, args.workers, args.kubeconfig) as call:
        results = [_replay(call, file, args) for file in files]
    passed, total = sum(ok for ok, _ in results), sum(count for _, count in results)
    print(f"{passed} passed, {total - passed} failed")
    floor = 0 if args.newer else args.floor
    return 0 if passed >= (total if floor is None else floor) else 1


@contextmanager
def server_of(version: str, workers: str = "1", kubeconfig: Path | None = None) -> Iterator[Call]:
    """Run a server of a version with the recorded server's flags, or take the one of the kubeconfig."""
    if kubeconfig is not None:
        yield _caller_of(kubeconfig)
        return
    with tempfile.NamedTemporaryFile("w") as tokens:
        tokens.write(f'{TOKEN},admin,admin,"system:masters"\n')
        tokens.flush()
        flags = {**FLAGS, "kubernetes_version": version}
        with Server(process=True, token_auth_file=tokens.name, workers=workers, **flags) as api:
            yield caller(api.url, ssl.create_default_context(cafile=str(api.ca)), TOKEN)


def scenario_files(paths: Iterable[Path], version: str = BASE) -> Iterator[Path]:
    """Yield the scenarios of files and folders.

    Paths relative to the recorded scenarios have the answers of the version; other paths are read as they are.
    """
    for path in paths:
        place = path if path.is_absolute() else recorded("scenarios", version) / path
        if not place.exists() and path.exists():
            place = path
        if not place.exists():
            raise SystemExit(f"{path}: no such scenario, neither here nor in tests/recorded/scenarios.tar.xz")
        yield from sorted(place.rglob("*.yaml")) if place.is_dir() else [place]


def _newer_in(folder: Path) -> list[Path]:
    """Return the scenarios whose steps or answers are not those of tests/recorded."""
    known = recorded("scenarios")
    return [file for file in scenario_files([folder]) if _content(file) != _content(known / file.relative_to(folder))]


def _content(scenario: Path) -> list[bytes]:
    return [file.read_bytes() for file in (scenario, scenario.with_suffix(".golden.json")) if file.exists()]


def _replay(call: Call, file: Path, args: argparse.Namespace) -> tuple[int, int]:
    """Return how many steps answered as recorded, and how many there are."""
    wanted = json.loads(file.with_suffix(".golden.json").read_text())
    passed, lines = 0, []
    for at, (want, step) in enumerate(
        zip(wanted, run_scenario(call, yaml.safe_load(file.read_text())["steps"]), strict=True)
    ):
        found = list(differences(without(want, args.ignore), without(step.compared, args.ignore)))
        passed += not found
        asked = short({key: value for key, value in step.asked.items() if key in METHODS})
        lines += [f"    step {at} {asked}: {difference}" for difference in found[:_SHOWN_DIFFERENCES]]
    print(f"{'ok  ' if passed == len(wanted) else 'DIFF'} {passed}/{len(wanted)} {file.stem}")
    if args.verbose and lines:
        print("\n".join(lines))
    return passed, len(wanted)


def caller(url: str, tls: ssl.SSLContext, token: str) -> Call:
    def call(method: str, path: str, body: Any, content_type: str, headers: dict[str, Any]) -> Reply:
        request = urllib.request.Request(url + path, data=_data(body), method=method)
        request.add_header("Accept", "application/json")
        if body is not None:
            request.add_header("Content-Type", content_type)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        for name, value in headers.items():
            for one in value if isinstance(value, list) else [value]:
                add = request.add_header if name in request.headers else request.add_unredirected_header
                add(name, one)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT, context=tls) as answer:
                return Reply(answer.status, dict(answer.headers), answer.read().decode("utf-8", "replace"))
        except urllib.error.HTTPError as answer:
            return Reply(answer.code, dict(answer.headers), answer.read().decode("utf-8", "replace"))

    return call


def _data(body: Any) -> bytes | None:
    if body is None:
        return None
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def _caller_of(kubeconfig: Path) -> Call:
    from pilothouse.client import load_kubeconfig
    from pilothouse.client.config.credentials import ssl_context
    from pilothouse.client.config.model import Credentials

    config = load_kubeconfig(kubeconfig)
    return caller(config.host, ssl_context(config.tls, Credentials(token=config.token)), config.token)


if __name__ == "__main__":
    sys.exit(main())
