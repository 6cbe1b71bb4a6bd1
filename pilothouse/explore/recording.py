"""Learning: the undisturbed run, and its noise from a second undisturbed run at another time.

Final states are compared in a normal form: uids and generated names are replaced by the identity of their object,
times by a token, and server-managed metadata is dropped. Other differences between two undisturbed runs are noise.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pilothouse.explore.model import RunResult, key_of
from pilothouse.explore.scenario import Ignored
from pilothouse.machinery.codec.json import canonical_json
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MANAGED: Final = frozenset({"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"})
_LEAST_PREFIX: Final = 3
_DIGITS: Final = "0123456789"
_ROOT_CA: Final = "/kube-root-ca.crt"
"""Name of the ConfigMap that the server makes in each namespace; its content is a certificate of the server."""
IGNORED_KINDS: Final = frozenset(
    {"Event", "Event.events.k8s.io", "Lease.coordination.k8s.io", "APIService.apiregistration.k8s.io", "FlowSchema"}
)
"""Kinds that say nothing about the operator's work."""


class Difference(NamedTuple):
    """One difference of two normal forms. `path` is empty for a missing or additional object."""

    object: str
    path: str
    expected: Any
    actual: Any


MISSING: Final = "<missing>"


@dataclass(frozen=True, slots=True)
class Noise:
    """What differs between undisturbed runs."""

    paths: frozenset[str] = frozenset()
    """`Kind /json/pointer`, list indices as *."""
    prefixes: frozenset[str] = frozenset()
    """`Kind namespace/prefix` of names with a random suffix."""
    unordered: frozenset[str] = frozenset()
    """`Kind /json/pointer` of lists whose order varies."""
    objects: frozenset[str] = frozenset()
    """Objects that not every undisturbed run has."""

    def lines(self) -> list[str]:
        names = [f"{prefix}*" for prefix in self.prefixes]
        return sorted([*self.paths, *self.objects, *names, *(f"{path} (order)" for path in self.unordered)])


@dataclass(frozen=True, slots=True)
class Learned:
    """The undisturbed run, its normal form and its noise."""

    baseline: RunResult
    normal: Mapping[str, Json]
    noise: Noise


def learn(first: RunResult, second: RunResult) -> Learned:
    """Return the first run with the noise that a second undisturbed run shows."""
    prefixes = frozenset(_random_prefixes(first.final, second.final))
    names_only = Noise(prefixes=prefixes)
    one, two = normalize(first.final, names_only), normalize(second.final, names_only)
    paths, unordered, objects = set(), set(), set()
    for key, path, expected, actual in differences(one, two, names_only, touched(names_only, first, second)):
        place = f"{key.partition(' ')[0]} {_generalized(path)}"
        if not path:
            objects.add(key)
        elif isinstance(expected, list) and isinstance(actual, list) and _sorted(expected) == _sorted(actual):
            unordered.add(place)
        else:
            paths.add(place)
    noise = Noise(frozenset(paths), prefixes, frozenset(unordered), frozenset(objects))
    return Learned(first, normalize(first.final, noise), noise)


def normalize(final: Mapping[str, Json], noise: Noise) -> dict[str, Json]:
    """Return the objects in normal form by normal key. Objects with the same generated prefix get numbers by
    content.
    """
    tokens: dict[str, str] = {}
    keys: dict[str, str] = {}
    for key, obj in final.items():
        meta = obj.get("metadata") or {}
        normal = keys[key] = _normal_key(key, meta, noise)
        if uid := meta.get("uid"):
            tokens[uid] = f"<uid of {normal}>"
        if normal != key:
            tokens[meta["name"]] = f"<name of {normal}>"
    pattern = re.compile("|".join(map(re.escape, sorted(tokens, key=len, reverse=True)))) if tokens else None

    def text(value: str) -> str:
        if pattern is not None:
            value = pattern.sub(lambda match: tokens[match[0]], value)
        return _TIME.sub("<time>", value) if value[:1].isdigit() else value

    groups: dict[str, list[Json]] = {}
    for key, obj in final.items():
        groups.setdefault(keys[key], []).append(_normal(obj, text))
    result: dict[str, Json] = {}
    for key, objects in groups.items():
        for number, obj in enumerate(sorted(objects, key=canonical_json), 1):
            result[key if number == 1 else f"{key} #{number}"] = obj
    return result


def touched(noise: Noise, *results: RunResult) -> frozenset[str]:
    """Return the normal keys of the objects that a run changed. Other objects are of the server: certificates and
    ports of two servers differ.
    """
    objects = [change.object or change.previous for result in results for change in result.changes]
    return frozenset(_normal_key(key_of(obj), obj.get("metadata") or {}, noise) for obj in objects if obj)


def differences(
    expected: Mapping[str, Json],
    actual: Mapping[str, Json],
    noise: Noise,
    keys: Container[str],
    ignored: Sequence[Ignored] = (),
) -> Iterator[Difference]:
    """Yield the differences of two normal forms, without noise. Only objects with these normal keys are compared."""
    for key in sorted({*expected, *actual}):
        kind = key.partition(" ")[0]
        if key.partition(" #")[0] not in keys or key.endswith(_ROOT_CA):
            continue
        if kind in IGNORED_KINDS or key in noise.objects or _is_ignored(key, "", ignored):
            continue
        if key not in actual:
            yield Difference(key, "", expected[key], None)
        elif key not in expected:
            yield Difference(key, "", None, actual[key])
        else:
            for path, one, two in compare(expected[key], actual[key], ""):
                place = f"{kind} {_generalized(path)}"
                if place in noise.paths or _is_ignored(key, path, ignored):
                    continue
                if place in noise.unordered and _sorted(one) == _sorted(two):
                    continue
                yield Difference(key, path, one, two)


def compare(one: Any, two: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (JSON pointer, value in `one`, value in `two`) of each difference; MISSING stands for an absent field."""
    if isinstance(one, dict) and isinstance(two, dict):
        for name in sorted({*one, *two}):
            inner = f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}"
            yield from compare(one.get(name, MISSING), two.get(name, MISSING), inner)
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        found = [part for index in range(len(one)) for part in compare(one[index], two[index], f"{path}/{index}")]
        if found and _sorted(one) == _sorted(two):
            yield path, one, two
        else:
            yield from found
    elif one != two:
        yield path, one, two


def unmanaged(metadata: Json) -> Json:
    """Return the metadata without the fields that the server sets."""
    return {key: value for key, value in metadata.items() if key not in _MANAGED}


def _normal(obj: Json, text: Any) -> Json:
    meta = obj.get("metadata") or {}
    generation = meta.get("generation")
    kept = unmanaged(meta)

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, dict):
            return {key: walk_field(key, part) for key, part in value.items()}
        return [walk(part) for part in value] if isinstance(value, list) else value

    def walk_field(key: str, value: Any) -> Any:
        if key == "observedGeneration":
            return "<current>" if value == generation else "<other>"
        if key == "conditions" and isinstance(value, list) and all(isinstance(part, dict) for part in value):
            return [walk(part) for part in sorted(value, key=lambda part: str(part.get("type")))]  # a list by type
        return walk(value)

    normal: Json = walk({**obj, "metadata": kept})
    return normal


def _normal_key(key: str, meta: Json, noise: Noise) -> str:
    name, generated = meta.get("name") or "", meta.get("generateName") or ""
    if generated and name.startswith(generated) and len(name) == len(generated) + 5:
        return f"{key[: len(key) - len(name)]}{generated}*"
    matching = [prefix for prefix in noise.prefixes if key.startswith(prefix)]
    return f"{max(matching, key=len)}*" if matching else key


def _random_prefixes(one: Mapping[str, Json], two: Mapping[str, Json]) -> Iterator[str]:
    """Yield the common prefixes of names that only one run has, with one partner of the same kind in the other."""
    only_two = [key for key in two if key not in one and not _is_generated(two[key])]
    for key in one:
        if key in two or _is_generated(one[key]):
            continue
        kind, _, place = key.partition(" ")
        best = ""
        for other in only_two:
            if other.partition(" ")[0] == kind:
                common = _common_prefix(place, other.partition(" ")[2])
                best = max(best, common.rstrip(_DIGITS), key=len)  # a number varies as a whole
        if len(best.rpartition("/")[2]) >= _LEAST_PREFIX:
            yield f"{kind} {best}"


def _is_generated(obj: Json) -> bool:
    meta = obj.get("metadata") or {}
    return bool(meta.get("generateName"))


def _common_prefix(one: str, two: str) -> str:
    length = 0
    while length < min(len(one), len(two)) and one[length] == two[length]:
        length += 1
    return one[:length]


def _generalized(path: str) -> str:
    return re.sub(r"/\d+(?=/|$)", "/*", path)


def _is_ignored(key: str, path: str, ignored: Sequence[Ignored]) -> bool:
    kind, _, place = key.partition(" ")
    name = place.rpartition("/")[2]
    for rule in ignored:
        if rule.kind and rule.kind not in (kind, kind.partition(".")[0]):
            continue
        if rule.name and not (name.startswith(rule.name[:-1]) if rule.name.endswith("*") else name == rule.name):
            continue
        if not rule.path or (path and re.fullmatch(re.escape(rule.path).replace(r"\*", "[^/]*") + "(/.*)?", path)):
            return True
    return False


def _sorted(values: Any) -> list[bytes]:
    return sorted(map(canonical_json, values)) if isinstance(values, list) else [canonical_json(values)]
