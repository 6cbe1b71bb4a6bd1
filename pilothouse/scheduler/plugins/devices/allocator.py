"""Device allocation: a depth-first search for disjoint devices that satisfy every request of the claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.client.cache.indexer import Indexer
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.scheduler.plugins.devices.slices import Device, common_selector, is_selected, is_tolerated

_MOST_STEPS = 10_000
"""Maximum search steps; bounds the exponential worst case."""


MOST_DEVICES = 32
"""Maximum devices of one claim, as upstream's AllocationResultsMaxSize."""


class CannotAllocate(PilothouseError):
    """No devices satisfy the claims."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """A request of a claim, or one of its firstAvailable alternatives."""

    name: str
    candidates: tuple[Device, ...]
    count: int
    request: Json

    @property
    def is_admin(self) -> bool:
        return bool(self.request.get("adminAccess"))


@dataclass(frozen=True, slots=True)
class _Choice:
    wish: _Wish
    device: Device


class Allocator:
    def __init__(self, devices: Sequence[Device], taken: set[tuple[str, str, str]], classes: Indexer) -> None:
        self._devices, self._taken, self._classes = devices, taken, classes
        self._steps = 0

    def allocate(self, claims: Sequence[Json]) -> list[Json]:
        """Return an allocation for each claim. Raises CannotAllocate or SelectionFailed."""
        used, allocations = set(self._taken), []
        for claim in claims:
            requests = claim["spec"].get("devices", {}).get("requests") or ()
            if (count := sum(map(_least_count, requests))) > MOST_DEVICES:
                message = f"number of requested devices {count} exceeds the claim limit of {MOST_DEVICES}"
                raise CannotAllocate(f"claim {namespace_of(claim)}/{name_of(claim)}: {message}")
            constraints = claim["spec"].get("devices", {}).get("constraints") or ()
            choices = self._extend([], list(requests), constraints, used)
            if choices is None:
                raise CannotAllocate("cannot allocate all claims")
            used |= {choice.device.id for choice in choices if not choice.wish.is_admin}
            results = [_shown(choice) for choice in choices]
            allocation: Json = {"devices": {"results": results}}
            if config := [*self._configurations(claim, choices)]:
                allocation["devices"]["config"] = config
            selector = common_selector(choice.device for choice in choices)
            allocations.append(allocation | ({"nodeSelector": selector} if selector else {}))
        return allocations

    def _extend(
        self, chosen: list[_Choice], requests: list[Json], constraints: Sequence[Json], used: set[tuple[str, str, str]]
    ) -> list[_Choice] | None:
        """Return a complete choice for the remaining requests; None if impossible."""
        if not requests:
            return chosen
        for wish in self._wishes(requests[0], used):
            for more in self._ways(wish, chosen, constraints, used):
                taken = used | {choice.device.id for choice in more if not wish.is_admin}
                complete = self._extend([*chosen, *more], requests[1:], constraints, taken)
                if complete is not None:
                    return complete
        return None

    def _wishes(self, request: Json, used: set[tuple[str, str, str]]) -> Iterator[_Wish]:
        """Yield the alternatives of the request in order of preference."""
        if "exactly" in request:
            yield self._wish(request["name"], request["exactly"], used)
        for alternative in request.get("firstAvailable") or ():
            yield self._wish(f"{request['name']}/{alternative['name']}", alternative, used)

    def _wish(self, name: str, request: Json, used: set[tuple[str, str, str]]) -> _Wish:
        device_class = self._classes.get_by_key(request["deviceClassName"])
        if device_class is None:
            raise CannotAllocate(f"request {name}: device class {request['deviceClassName']} does not exist")
        selectors = [*(device_class["spec"].get("selectors") or ()), *(request.get("selectors") or ())]
        matching = tuple(
            device
            for device in self._devices
            if is_selected(device, selectors) and is_tolerated(device, request.get("tolerations") or [])
        )
        if request.get("allocationMode") == "All":
            return _Wish(name, matching, max(len(matching), 1), request)
        free = tuple(device for device in matching if request.get("adminAccess") or device.id not in used)
        return _Wish(name, free, request.get("count") or 1, request)

    def _ways(
        self, wish: _Wish, chosen: list[_Choice], constraints: Sequence[Json], used: set[tuple[str, str, str]]
    ) -> Iterator[list[_Choice]]:
        """Yield selections of the requested number of devices that satisfy the constraints.

        The recursion depth equals the number of devices, which MOST_DEVICES bounds.
        """
        if len(chosen) + wish.count > MOST_DEVICES or wish.count > len(wish.candidates):
            return

        def extend(more: list[_Choice], start: int) -> Iterator[list[_Choice]]:
            if len(more) == wish.count:
                yield more
                return
            for position in range(start, len(wish.candidates)):
                self._steps += 1
                if self._steps > _MOST_STEPS:
                    return
                device = wish.candidates[position]
                added = [*more, _Choice(wish, device)]
                is_free = wish.is_admin or device.id not in used
                if is_free and all(_keeps(constraint, [*chosen, *added]) for constraint in constraints):
                    yield from extend(added, position + 1)

        yield from extend([], 0)

    def _configurations(self, claim: Json, choices: Sequence[_Choice]) -> Iterator[Json]:
        seen: set[str] = set()
        for choice in choices:
            if choice.wish.name not in seen:
                seen.add(choice.wish.name)
                device_class = self._classes.get_by_key(choice.wish.request["deviceClassName"]) or {"spec": {}}
                for config in device_class["spec"].get("config") or ():
                    yield {"source": "FromClass", "requests": [choice.wish.name], **config}
        for config in claim["spec"]["devices"].get("config") or ():
            yield {"source": "FromClaim", **config}


def _least_count(request: Json) -> int:
    """Return the minimum number of devices of the request."""
    wishes = [request["exactly"]] if "exactly" in request else request.get("firstAvailable") or ()
    return min((1 if wish.get("allocationMode") == "All" else wish.get("count") or 1 for wish in wishes), default=0)


def _shown(choice: _Choice) -> Json:
    device, request = choice.device, choice.wish.request
    result: Json = {"request": choice.wish.name, "driver": device.driver, "pool": device.pool, "device": device.name}
    if choice.wish.is_admin:
        result["adminAccess"] = True
    if tolerations := request.get("tolerations"):
        result["tolerations"] = tolerations
    return result


def _keeps(constraint: Json, choices: Sequence[_Choice]) -> bool:
    """Return whether all devices covered by the constraint have the same value of its attribute."""
    name = constraint.get("matchAttribute")
    if not name:
        return True
    about = constraint.get("requests") or ()
    values = [
        _attribute(choice.device, name)
        for choice in choices
        if not about or choice.wish.name in about or choice.wish.name.partition("/")[0] in about
    ]
    return all(value is not None and value == values[0] for value in values)


def _attribute(device: Device, name: str) -> Json | None:
    attributes: Json = device.spec.get("attributes") or {}
    domain, _, own = name.partition("/")
    attribute: Json | None = attributes.get(name) or (attributes.get(own) if domain == device.driver else None)
    return attribute
