"""`pilothouse diff-versions OLD NEW [FILE|DIR…]`: print the differences between two Kubernetes versions.

With manifests, the differences for these objects: refusals, warnings, and fields of the created objects. Without
manifests, the differences of served kinds and of feature gates.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pilothouse.cli.arguments import CommandParser
from pilothouse.machinery import release
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.apiserver.server.known_features import Spec
    from pilothouse.cli.offline.manifests import Manifest
    from pilothouse.testing.api import BlockingAPI

_ASSIGNED = frozenset(
    {"managedFields", "uid", "creationTimestamp", "resourceVersion", "clusterIP", "clusterIPs"}
    | {"nodePort", "healthCheckNodePort"}
)
"""Fields whose values a server chooses."""
_ESTABLISHED_WITHIN = 60.0
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def main(arguments: Sequence[str]) -> int:
    """Return 0 if nothing differs, 1 if something differs, 2 if a path cannot be read."""
    parsed = _parser().parse_args(arguments)
    from pilothouse.cli.offline.documents import NothingToRead
    from pilothouse.testing.running import StartError

    try:
        lines = list(_object_lines(parsed) if parsed.paths else _version_lines(parsed.old, parsed.new))
    except (NothingToRead, StartError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines) or f"No differences between Kubernetes {parsed.old} and {parsed.new}.")
    return 1 if lines else 0


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="pilothouse diff-versions",
        description="Print the differences between two Kubernetes versions, for manifests or in general.",
        example="pilothouse diff-versions 1.35 1.37 deploy/",
    )
    for name in ("old", "new"):
        parser.add_argument(name, choices=tuple(release.RELEASES), metavar=name.upper(), help=f"{name} version")
    help_ = "YAML or JSON files, folders (searched recursively), or - for standard input"
    parser.add_argument("paths", nargs="*", metavar="FILE|DIR", help=help_)
    return parser


def _object_lines(parsed: argparse.Namespace) -> Iterator[str]:
    """Yield the differences of each object that has any."""
    from pilothouse.cli.offline.documents import Checked
    from pilothouse.cli.offline.manifests import read_manifests

    manifests = []
    for manifest in read_manifests(parsed.paths):
        if isinstance(manifest, Checked):
            yield f"{manifest.file}: cannot be read; `pilothouse validate` shows the reason"
        else:
            manifests.append(manifest)
    outcomes = [_outcomes(name, manifests) for name in (parsed.old, parsed.new)]
    for manifest, old, new in zip(manifests, *outcomes, strict=True):
        if differences := list(_differences(old, new, parsed.old, parsed.new)):
            yield f"{manifest.subject} ({manifest.file}:{manifest.line()})"
            yield from (f"  {line}" for line in differences)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer of one version to the creation of an object."""

    obj: Json
    """The created object; empty if refused."""
    refusal: str
    warnings: list[str]


def _outcomes(version: str, manifests: Sequence[Manifest]) -> list[Outcome]:
    """Create the objects on a server of the version, definitions and namespaces first. Raises StartError."""
    from pilothouse.testing.in_thread import Server
    from pilothouse.testing.pytest_plugin.template import install_rank

    order = sorted(range(len(manifests)), key=lambda at: install_rank(manifests[at].kind))
    outcomes: dict[int, Outcome] = {}
    with Server(kubernetes_version=version, controllers="-*", disable_admission_plugins="ServiceAccount") as api:
        for name in sorted({manifest.namespace for manifest in manifests} - {""}):
            api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        for at in order:
            outcomes[at] = _created(api, manifests[at])
    return [outcomes[at] for at in range(len(manifests))]


def _created(api: BlockingAPI, manifest: Manifest) -> Outcome:
    from pilothouse.client.rest.client import warnings_in

    obj, path = manifest.obj, _collection(api, manifest)
    if not path:
        return Outcome({}, f"{obj.get('apiVersion')} {manifest.kind} is not served", [])
    answer = api.request("POST", f"{path}?fieldValidation=Warn", obj)
    if answer.status == 409 and manifest.kind == "Namespace":  # created before, or by the server
        answer = api.request("POST", f"{path}?fieldValidation=Warn&dryRun=All", _renamed(obj))
    warnings = warnings_in(answer.headers)
    if answer.status != 201:
        return Outcome({}, answer.json.get("message", ""), warnings)
    if manifest.kind == "CustomResourceDefinition":
        group, plural = obj["spec"]["group"], obj["spec"]["names"]["plural"]
        for version in obj["spec"]["versions"]:
            if version.get("served"):
                is_there = partial(_exists, api, f"/apis/{group}/{version['name']}/{plural}")
                api.eventually(is_there, within=_ESTABLISHED_WITHIN)
    return Outcome(answer.json, "", warnings)


def _exists(api: BlockingAPI, path: str) -> bool:
    return api.request("GET", path).status == 200


def _collection(api: BlockingAPI, manifest: Manifest) -> str:
    """Return the path at which objects of the kind are created; empty for a kind that is not served."""
    version = str(manifest.obj.get("apiVersion"))
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    answer = api.request("GET", base)
    for resource in answer.json.get("resources", ()) if answer.status == 200 else ():
        if resource["kind"] == manifest.kind and "/" not in resource["name"]:
            namespace = f"/namespaces/{manifest.namespace or 'default'}" if resource["namespaced"] else ""
            return f"{base}{namespace}/{resource['name']}"
    return ""


def _renamed(obj: Json) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "name": f"{obj['metadata']['name']}-1"}}


def _differences(old: Outcome, new: Outcome, old_version: str, new_version: str) -> Iterator[str]:
    if old.refusal != new.refusal:
        for version, outcome in ((old_version, old), (new_version, new)):
            yield f"{version}: refused: {outcome.refusal}" if outcome.refusal else f"{version}: accepted"
    yield from (f"{new_version}: new warning: {text}" for text in new.warnings if text not in old.warnings)
    yield from (f"{new_version}: no warning any more: {text}" for text in old.warnings if text not in new.warnings)
    if old.obj and new.obj:
        yield from _changed_fields(old.obj, new.obj, "")


def _changed_fields(old: Any, new: Any, path: str) -> Iterator[str]:
    """Yield a line for each field that is missing in a version or has different values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new} - _ASSIGNED):
            inner = f"{path}.{name}" if path else name
            if name not in old:
                yield f"+ {inner}: {_shown(new[name])}"
            elif name not in new:
                yield f"- {inner}: {_shown(old[name])}"
            else:
                yield from _changed_fields(old[name], new[name], inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _changed_fields(one, other, f"{path}[{at}]")
    elif old != new:
        yield f"~ {path}: {_shown(old)} -> {_shown(new)}"


def _shown(value: Any) -> str:
    import orjson

    return orjson.dumps(value).decode()


def _version_lines(old: str, new: str) -> Iterator[str]:
    """Yield the served kinds and the feature gates that differ."""
    from pilothouse.apiserver.server.known_features import known_gates

    kinds = [_served_kinds(version) for version in (old, new)]
    yield from (f"kind {kind}: served since {new}" for kind in sorted(kinds[1] - kinds[0]))
    yield from (f"kind {kind}: not served in {new}" for kind in sorted(kinds[0] - kinds[1]))
    before, after = (
        known_gates(minor, minor, minor - 1).specs for minor in (release.RELEASES[name].minor for name in (old, new))
    )
    for name in sorted({*before, *after}):
        stages = [_stage(gates.get(name)) for gates in (before, after)]
        if stages[0] != stages[1]:
            yield f"feature gate {name}: {stages[0]} -> {stages[1]}"


def _stage(spec: Spec | None) -> str:
    return f"{spec.stage.lower() or 'stable'}, {'enabled' if spec.default else 'disabled'}" if spec else "none"


def _served_kinds(version: str) -> set[str]:
    """Return `group/version Kind` of all kinds that a server of the version serves by default. Raises StartError."""
    from pilothouse.testing.in_thread import Server

    kinds = set()
    with Server(kubernetes_version=version, controllers="-*", process=True) as api:
        for root in ("/api", "/apis"):
            for group in api.request("GET", root, accept=_DISCOVERY).json["items"]:
                name = group["metadata"].get("name", "")
                for served in group["versions"]:
                    api_version = f"{name}/{served['version']}" if name else served["version"]
                    kinds |= {f"{api_version} {each['responseKind']['kind']}" for each in served.get("resources", ())}
    return kinds
