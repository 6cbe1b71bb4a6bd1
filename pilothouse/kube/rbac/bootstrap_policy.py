"""Reads the tables of roles and bindings beside this file.

clusterrole NAME                        a role for the whole cluster; what is indented belongs to it
  label aggregate-to-edit               it is part of another role
  from aggregate-to-view                it is made up of other roles
  VERBS : GROUPS : RESOURCES : NAMES    a rule; the names may be left out; `core` is the group without a name
  VERBS : PATHS                         a rule about paths
    …                                   a deeper line goes on where the one before it ended
role NAMESPACE/NAME                     the same in a namespace
controller NAME                         a cluster role, and its binding to the service account of a controller
bind [NAMESPACE/]NAME [ROLE] : SUBJECTS a binding; the role has the binding's name where none is given
[GATE] …                                any line, with what belongs to it, only where the feature is on
[1.36+] …  [1.35-] …                    any line, only in these versions; several marks must all apply
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from importlib.resources import files

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.rbac.roles import GROUP
from pilothouse.kube.rbac.rules import PolicyRule
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.version_rules import in_versions

AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"

_TABLES = ("cluster_roles.txt", "controller_roles.txt", "namespace_roles.txt")
_WORDS = {
    "READ": "get list watch",
    "WRITE": "create delete deletecollection patch update",
    "ALL": "create delete deletecollection get list patch update watch",
}
_EVENTS = "create patch update : core events.k8s.io : events"
_GATED_WORD = re.compile(r"\[([\w.+-]+)\](\S+)")
_CONTINUED = re.compile(r"\n {4,}")


@dataclass(slots=True)
class BootstrapObjects:
    """The bootstrap objects by kind."""

    by_kind: dict[str, list[Json]] = field(default_factory=dict)

    def add(self, kind: str, name: str, content: Json) -> Json:
        obj = _object(kind, name, content)
        self.by_kind.setdefault(kind, []).append(obj)
        return obj


def bootstrap_objects(is_on: Callable[[str], bool] = enabled) -> BootstrapObjects:
    """Parse the tables. `is_on` returns the state of a feature gate."""

    def applies(mark: str) -> bool:
        return in_versions(mark) if mark.startswith("1.") else is_on(mark)

    objects = BootstrapObjects()
    for table in _TABLES:
        text = files(__package__).joinpath(table).read_text(encoding="utf-8")
        for block in _blocks(_CONTINUED.sub(" ", text)):
            lines = list(map(partial(_enabled_line, applies), block))
            if lines[0]:
                _read([line for line in lines if line], objects)
    return objects


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield blocks: an unindented line and the indented lines below."""
    block: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        if block and not line.startswith(" "):
            yield block
            block = []
        block.append(line.strip())
    if block:
        yield block


def _enabled_line(applies: Callable[[str], bool], line: str) -> str:
    """Return the line without its marks and without words whose mark does not apply; empty if its own does not."""
    mark, _, rest = line.partition(" ")
    if mark.startswith("[") and mark.endswith("]"):
        return _enabled_line(applies, rest) if applies(mark.strip("[]")) else ""
    return _GATED_WORD.sub(lambda found: found[2] if applies(found[1]) else "", line)


def _read(block: list[str], objects: BootstrapObjects) -> None:
    what, _, rest = block[0].partition(" ")
    if what == "bind":
        _bind(rest, objects)
    elif what == "controller":
        _fill(objects.add("ClusterRole", f"system:controller:{rest}", {"rules": None}), block[1:])
        _bind(f"system:controller:{rest} : serviceaccount/kube-system/{rest}", objects)
    else:
        kind = {"clusterrole": "ClusterRole", "role": "Role"}[what]
        _fill(objects.add(kind, rest, {"rules": None}), block[1:])


def _fill(role: Json, lines: list[str]) -> None:
    for line in lines:
        word, _, label = line.partition(" ")
        if word == "label":
            role["metadata"]["labels"][f"{GROUP}/{label}"] = "true"
        elif word == "from":
            selector = {"matchLabels": {f"{GROUP}/{label}": "true"}}
            role.setdefault("aggregationRule", {}).setdefault("clusterRoleSelectors", []).append(selector)
        else:
            role["rules"] = [*(role["rules"] or ()), _rule(_EVENTS if line == "EVENTS" else line).as_json()]


def _rule(line: str) -> PolicyRule:
    verbs, *about = (tuple(_WORDS.get(part, part).split()) for part in line.split(" : "))
    if len(about) == 1:
        return PolicyRule(verbs, paths=about[0])
    groups = tuple("" if group == "core" else group for group in about[0])
    return PolicyRule(verbs, groups, about[1], *about[2:])


def _bind(line: str, objects: BootstrapObjects) -> None:
    named, _, subjects = line.partition(" : ")
    binding, _, role = named.partition(" ")
    namespaced = "/" in binding
    content: Json = {"subjects": [_subject(word) for word in subjects.split()]} if subjects else {}
    kind = "Role" if namespaced else "ClusterRole"
    content["roleRef"] = {"apiGroup": GROUP, "kind": kind, "name": role or binding.rpartition("/")[2]}
    objects.add(f"{kind}Binding", binding, content)


def _subject(word: str) -> Json:
    kind, _, name = word.partition("/")
    if kind == "serviceaccount":
        namespace, _, name = name.partition("/")
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"kind": {"user": "User", "group": "Group"}[kind], "apiGroup": GROUP, "name": name}


def _object(kind: str, name: str, content: Json) -> Json:
    namespace, _, name = name.rpartition("/")
    return {
        "kind": kind,
        "apiVersion": f"{GROUP}/v1",
        "metadata": {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {AUTO_UPDATE: "true"},
        },
        **content,
    }
