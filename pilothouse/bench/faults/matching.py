"""Whether a fault concerns a request: it fits every list that the match has."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.http import Request
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.bench.definitions import GROUP
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class Selector:
    """Who asks: users by their names, programs by how their User-Agent begins. Empty tuples are fitted by all."""

    users: tuple[str, ...] = ()
    user_agents: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Json) -> Selector:
        return cls(tuple(given.get("users") or ()), tuple(given.get("userAgents") or ()))

    def fits(self, user: str, agent: str, *, own: bool = False) -> bool:
        """`own` says that the server asks itself: then it must be named."""
        if own and not self.users:
            return False
        return _fits(self.users, user) and (not self.user_agents or agent.startswith(self.user_agents))


@dataclass(frozen=True, slots=True)
class Match:
    """spec.match of a Fault, but for chance and number."""

    who: Selector = Selector()
    verbs: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Json) -> Match:
        verbs, resources, namespaces = (frozenset(given.get(key) or ()) for key in ("verbs", "resources", "namespaces"))
        return cls(Selector.of(given), verbs - {"*"}, resources, namespaces, tuple(given.get("names") or ()))

    def fits(self, request: Request, *, own: bool) -> bool:
        info = request.info
        return (
            (not self.verbs or info.verb in self.verbs)
            and self._fits_resource(info)
            and (not self.namespaces or info.namespace in self.namespaces)
            and _fits(self.names, info.name)
            and self.who.fits(request.user.name, request.header(b"user-agent"), own=own)
        )

    def _fits_resource(self, info: RequestInfo) -> bool:
        """Who would hit the bench itself must say so: else nobody could take the fault away again."""
        if not self.resources or "*" in self.resources:
            return info.group != GROUP and (info.is_resource or not self.resources)
        return info.is_resource and not self.resources.isdisjoint(_spellings(info))


def _spellings(info: RequestInfo) -> Iterable[str]:
    """Return the ways to name what is asked for: with and without its group, all resources with that subresource."""
    behind = f"/{info.subresource}" if info.subresource else ""
    names = [f"{info.resource}.{info.group}" + behind]
    if info.group != GROUP:
        names.append(info.resource + behind)
    return [*names, f"*{behind}", *([f"{info.resource}/*"] if behind else [])]


def _fits(patterns: tuple[str, ...], value: str) -> bool:
    return not patterns or any(
        value.startswith(pattern[:-1]) if pattern.endswith("*") else value == pattern for pattern in patterns
    )
