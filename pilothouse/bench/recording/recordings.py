"""Writes down who asks for what, bounded in number: many names of one kind become a star."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pilothouse.apiserver.http import Request
from pilothouse.bench.definitions import GROUP
from pilothouse.bench.faults.matching import Selector
from pilothouse.bench.served_kind import ServedKind
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

MANY: Final = "*"
_MOST_NAMES: Final = 16
_MOST_REQUESTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a request decides whether it is allowed."""

    user: str
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @classmethod
    def of(cls, request: Request) -> Asked:
        info = request.info
        if not info.is_resource:
            return cls(request.user.name, info.verb, path=info.path)
        place = (info.group, info.resource, info.subresource, info.namespace, info.name)
        return cls(request.user.name, info.verb, *place)

    def shown(self, count: int) -> Json:
        """Return it as an entry of the status."""
        fields = ("group", "resource", "subresource", "namespace", "name")
        found = {field: value for field in fields if (value := getattr(self, field))}
        path = {"nonResourceURL": self.path} if self.path else {}
        return {"user": self.user, "verb": self.verb, **found, **path, "count": count}


class Tape:
    """What was recorded for one Recording."""

    def __init__(self, who: Selector, status: Json) -> None:
        self.who = who
        self._counts: dict[Asked, int] = {}
        self._names: dict[Asked, set[str]] = {}  # of the same request but for its name
        self._total: int = status.get("total") or 0
        self._left: int = status.get("left") or 0
        for each in status.get("requests") or ():
            fields = {key: value for key, value in each.items() if key not in ("count", "nonResourceURL")}
            self._count(Asked(**fields, path=each.get("nonResourceURL") or ""), each["count"])

    def add(self, asked: Asked) -> None:
        self._total += 1
        self._count(asked, 1)

    @property
    def status(self) -> Json:
        requests = [asked.shown(count) for asked, count in self._counts.items()]
        status = {"requests": requests, "total": self._total, "distinct": len(requests)}
        return status | ({"left": self._left} if self._left else {})

    def _count(self, asked: Asked, count: int) -> None:
        asked = self._with_few_names(asked)
        if asked in self._counts or len(self._counts) < _MOST_REQUESTS:
            self._counts[asked] = self._counts.get(asked, 0) + count
        else:
            self._left += count

    def _with_few_names(self, asked: Asked) -> Asked:
        """One name too many, and all of them become a star."""
        if not asked.name:
            return asked
        alike = replace(asked, name=MANY)
        if alike in self._counts:
            return alike
        names = self._names.setdefault(alike, set()) if len(self._names) < _MOST_REQUESTS else {MANY}
        names.add(asked.name)
        if asked.name != MANY and len(names) <= _MOST_NAMES:
            return asked
        self._counts[alike] = sum(self._counts.pop(replace(asked, name=name), 0) for name in names)
        self._names.pop(alike, None)
        return alike


class Recordings:
    """Is an Owner."""

    kind: ServedKind

    def __init__(self) -> None:
        self._tapes: dict[str, Tape] = {}

    def record(self, request: Request, *, own: bool) -> None:
        if request.info.group == GROUP:
            return  # whoever tests is not who is tested
        for name, tape in self._tapes.items():
            if tape.who.fits(request.user.name, request.header(b"user-agent"), own=own):
                tape.add(Asked.of(request))
                self.kind.changed(name)

    async def hear(self, name: str, obj: Json | None) -> None:
        if obj is None:
            self._tapes.pop(name, None)
            return
        who = Selector.of(obj.get("spec") or {})
        if name not in self._tapes:
            self._tapes[name] = Tape(who, obj.get("status") or {})
        self._tapes[name].who = who
        self.kind.changed(name)

    def revised(self, name: str, obj: Json) -> Json | None:
        tape = self._tapes.get(name)
        return None if tape is None else obj | {"status": tape.status}

    async def about_to_be_read(self) -> None:
        """Whatever has changed was said at once."""
