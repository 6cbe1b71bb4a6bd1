"""Prints the tables of feature gates and dependencies for `pilothouse/apiserver/server/known_features.py`.

    python -m tools.feature_gates ~/kubernetes v1.34.11 v1.35.8 v1.36.4 v1.37.0

reads the tags from a clone of kubernetes/kubernetes, one tag for each minor version, oldest first.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

_LIST = "test/compatibility_lifecycle/reference/versioned_feature_list.yaml"
_CLIENT_GO = "staging/src/k8s.io/client-go/features/known_features.go"
_KUBE = "pkg/features/kube_features.go"
_DEPENDENCIES = "defaultKubernetesFeatureGateDependencies = map"
_FIRST_COLUMN = 31
_SKEW = 3
_LETTERS = {"Alpha": "a", "Beta": "b", "GA": "g", "Deprecated": "d"}
_SPEC = re.compile(r"\{(?:Version: version\.MustParse\(\"1\.(\d+)\"\), )?Default: (\w+), PreRelease: (\w+)([^}]*)\}")


class Stage(NamedTuple):
    since: int
    code: str
    """Letter of the stage, capital if enabled by default, with ! if locked."""


class Binary(NamedTuple):
    gates: dict[str, list[Stage]]
    dependencies: dict[str, list[str]]

    def code(self, name: str, minor: int) -> str:
        """Return the code of a gate in a version, or `-`."""
        return next((stage.code for stage in reversed(self.gates[name]) if stage.since <= minor), "-")


def gate_rows(binaries: Mapping[int, Binary]) -> Iterator[str]:
    """Yield a row for each gate: its name, the binaries that have it, and its code in each version."""
    for name in sorted({name for binary in binaries.values() for name in binary.gates}):
        having = [minor for minor, binary in binaries.items() if name in binary.gates]
        codes = []
        for minor in range(_FIRST_COLUMN, max(binaries) + 1):
            tells = minor if minor in having else having[-1]
            codes.append(binaries[tells].code(name, minor) if minor <= having[-1] else ".")
        yield f"    {name:<52} {having[0]}-{having[-1]}  {' '.join(f'{code:<2}' for code in codes)}".rstrip()


def dependency_rows(binaries: Mapping[int, Binary]) -> Iterator[str]:
    """Yield a row for each gate that requires gates which can be disabled."""
    for name in sorted({name for binary in binaries.values() for name in binary.dependencies}):
        runs: list[tuple[int, int, list[str]]] = []
        for minor, binary in binaries.items():
            if needed := [gate for gate in binary.dependencies.get(name, ()) if _can_be_off(binary, gate, minor)]:
                if runs and runs[-1][1:] == (minor - 1, needed):
                    runs[-1] = (runs[-1][0], minor, needed)
                else:
                    runs.append((minor, minor, needed))
        yield from (f"    {name} {first}-{last} {' '.join(needed)}" for first, last, needed in runs)


def _can_be_off(binary: Binary, gate: str, minor: int) -> bool:
    codes = (binary.code(gate, emulated) for emulated in range(minor - _SKEW, minor + 1))
    return any(not (code.endswith("!") and code[0].isupper()) for code in codes)


def read_binary(listed: str, client_go: str, kube: str) -> Binary:
    """Read the gates of one tag from the text of its three files."""
    gates = {
        gate["name"]: [_stage(spec) for spec in gate["versionedSpecs"] if "minCompatibilityVersion" not in spec]
        for gate in yaml.safe_load(listed)
    }
    for name, body in re.findall(r"^\t(\w+):\s+(\{.*?\}(?=,\n\t\w|,\n\}))", client_go, re.MULTILINE | re.DOTALL):
        gates[name] = [
            Stage(int(minor or 0), _code(default == "true", stage, "LockToDefault: true" in rest))
            for minor, default, stage, rest in _SPEC.findall(body)
        ]
    return Binary(gates, dict(_dependencies(kube)))


def _dependencies(kube: str) -> Iterator[tuple[str, list[str]]]:
    _, _, body = kube.partition(_DEPENDENCIES)
    body = re.sub(r"//.*", "", body.partition("\n}\n")[0])
    for name, names in re.findall(r"([\w.]+):\s*\{([^}]*)\}", body):
        yield name.rpartition(".")[2], re.findall(r"(\w+)\)?\s*(?:,|$)", names.strip())


def _stage(spec: Mapping[str, Any]) -> Stage:
    minor = int(spec["version"].split(".")[1])
    return Stage(minor, _code(spec["default"], spec["preRelease"], spec["lockToDefault"]))


def _code(default: bool, stage: str, locked: bool) -> str:
    letter = _LETTERS[stage]
    return (letter.upper() if default else letter) + ("!" if locked else "")


def main(clone: str, *tags: str) -> None:
    binaries = {}
    for tag in tags:
        texts = [
            subprocess.check_output(["git", "-C", clone, "show", f"{tag}:{file}"], text=True)
            for file in (_LIST, _CLIENT_GO, _KUBE)
        ]
        binaries[int(tag.split(".")[1])] = read_binary(*texts)
    print("\n".join([*gate_rows(binaries), "", *dependency_rows(binaries)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
