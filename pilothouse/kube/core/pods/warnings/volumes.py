"""Warnings about volumes: deprecated sources and overlapping projected files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice

from pilothouse.kube.core.pods.warnings.containers import fractional
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Path
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

_DEPRECATED = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "ephemeral": "",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
"""In order of the warnings. Claims of ephemeral volumes have separate warnings."""
_SHOWN_AS = {"storageos": "storageOS"}
_MOST_OVERLAPS = 20
"""Maximum reported overlaps per file. Bounds the quadratic number of overlaps."""
_MOST_DIRECTORIES = 64


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def volume_warnings(volumes: Sequence[Json], path: Path) -> Iterator[str]:
    for position, volume in enumerate(volumes):
        if _DEPRECATED.keys().isdisjoint(volume):
            continue
        for name, message in _DEPRECATED.items():
            source = volume.get(name)
            if source is None:
                continue
            at = path.index(position).child(_SHOWN_AS.get(name, name))
            if message:
                yield f"{at}: {message}"
            elif (template := source.get("volumeClaimTemplate")) is not None:
                yield from claim_warnings(template.get("spec") or {}, at.child("volumeClaimTemplate", "spec"))


def claim_warnings(spec: Json, path: Path) -> Iterator[str]:
    """Yield the warnings about the spec of a PersistentVolumeClaim."""
    resources = spec.get("resources") or {}
    for kind in ("requests", "limits"):
        if text := (resources.get(kind) or {}).get("storage"):
            yield from fractional(text, path.child("resources", kind).key("storage"))


def overlap_warnings(volumes: Sequence[Json]) -> Iterator[str]:
    for volume in volumes:
        name = volume.get("name") or ""
        if config_map := volume.get("configMap"):
            described = f"ConfigMap {quote(config_map.get('name') or '')}"
            yield from _overlaps(name, described, _files(config_map))
        if secret := volume.get("secret"):
            described = f"Secret {quote(secret.get('secretName') or '')}"
            yield from _overlaps(name, described, _files(secret))
        if downward := volume.get("downwardAPI"):
            yield from _overlaps(name, "DownwardAPI", _files(downward))
        if projected := volume.get("projected"):
            sources = projected.get("sources") or ()
            for _ in (source for source in sources if not source):
                yield f"volume {quote(name)} (Projected) has no sources provided"
            yield from _overlaps(name, "Projected", [file for source in sources for file in _projected(source)])


def _files(source: Json, printed: str = "") -> list[_File]:
    return [_File(item.get("path") or "", printed) for item in source.get("items") or ()]


def _projected(source: Json) -> list[_File]:
    if (config_map := source.get("configMap")) and config_map.get("items"):
        return _files(config_map, f"ConfigMap {quote(config_map.get('name') or '')}")
    if (secret := source.get("secret")) and secret.get("items"):
        return _files(secret, f"Secret {quote(secret.get('name') or '')}")
    if (downward := source.get("downwardAPI")) and downward.get("items"):
        return _files(downward, "DownwardAPI")
    if token := source.get("serviceAccountToken"):
        return [_File(token.get("path") or "", "ServiceAccountToken")]
    return []


def _overlaps(volume: str, described: str, files: Sequence[_File]) -> Iterator[str]:
    if len(files) < 2:
        return
    paths = _Paths()
    for given in files:
        file = _File(given.path.rstrip("/"), given.source)
        if not file.path:
            continue
        for other in paths.overlapping(file.path):
            yield f"volume {quote(volume)} ({described}): overlapping paths: {file} with {other}"
        paths.add(file)


class _Paths:
    """Files indexed by directory. Two files overlap if the paths are equal or one path is a directory of the other."""

    def __init__(self) -> None:
        self._files: list[_File] = []
        self._at: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {}

    def add(self, file: _File) -> None:
        number = len(self._files)
        self._files.append(file)
        self._at.setdefault(file.path, []).append(number)
        for directory in _directories(file.path):
            self._below.setdefault(directory, []).append(number)

    def overlapping(self, path: str) -> list[_File]:
        """Return the first files that overlap with the path, in order."""
        places = [self._at.get(path, ()), self._below.get(path, ()), *(self._at.get(d, ()) for d in _directories(path))]
        return [self._files[number] for number in islice(merge(*places), _MOST_OVERLAPS)]


def _directories(path: str) -> Iterator[str]:
    """Yield the nearest parent directories."""
    end = path.rfind("/")
    for _ in range(_MOST_DIRECTORIES):
        if end < 0:
            return
        yield path[:end]
        end = path.rfind("/", 0, end)
