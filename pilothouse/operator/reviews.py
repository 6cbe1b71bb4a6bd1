"""The review protocol: AdmissionReview v1 and ConversionReview v1 in, the same review with a response out.

Denials are responses with `allowed: false`. An unexpected exception of a handler is raised, and becomes status 500: the
API server then applies the failurePolicy of the webhook.
"""

from __future__ import annotations

import base64
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import orjson

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import FieldError
from pilothouse.machinery.names import GroupKind, version_of
from pilothouse.machinery.objects import Json, deep_equal, name_of
from pilothouse.machinery.status_error import PilothouseError, StatusError
from pilothouse.operator.kinds import AnyKind, copy_json, gvk_of, kind_of, to_json
from pilothouse.operator.reconciler import Reconciler, kind_of_reconciler
from pilothouse.operator.webhooks import CONVERT_PATH, AdmissionRequest, Denied, admission_webhooks, conversions

Reviewer = Callable[[Any], Awaitable[Json]]
"""Answers a parsed review. Raises MalformedReview."""
_ADMISSION, _CONVERSION = "admission.k8s.io/v1", "apiextensions.k8s.io/v1"


class MalformedReview(PilothouseError):
    """The body is not a review that this webhook understands."""


@dataclass(frozen=True, slots=True)
class ObjectForm:
    """Conversion between JSON and the objects that a handler receives. The defaults pass dicts."""

    read: Callable[[Json], Any] = deepcopy
    write: Callable[[Any], Json] = dict


def form_of_kind(kind: AnyKind | None) -> ObjectForm:
    """Return the form of a kind's objects: instances of its class, or dicts."""
    return ObjectForm(kind_of(kind).read, to_json) if isinstance(kind, type) else ObjectForm()


def reviewers_of(reconcilers: Iterable[Reconciler[Any]]) -> dict[str, Reviewer]:
    """Return the handlers of all webhooks of the reconcilers: path -> function that answers a parsed review."""
    reviewers: dict[str, Reviewer] = {}
    converted: dict[GroupKind, dict[tuple[str, str], Conversion]] = {}
    for reconciler in reconcilers:
        kind = kind_of_reconciler(type(reconciler))
        for hook in admission_webhooks(type(reconciler)):
            handler = AdmissionHandler(
                getattr(reconciler, hook.method),
                form_of_kind(hook.options.kind or kind),
                GroupKind(hook.group, hook.kind),
                mutating=hook.options.type == "mutating",
            )
            reviewers[hook.path] = handler.review
        for versions, (method, options) in conversions(type(reconciler)).items():
            read = form_of_kind(options.from_ if isinstance(options.from_, type) else None).read
            write = form_of_kind(options.to if isinstance(options.to, type) else None).write
            steps = converted.setdefault(gvk_of(kind).group_kind, {})
            steps[versions] = Conversion(getattr(reconciler, method), read, write)
    if converted:
        reviewers[CONVERT_PATH] = ConversionHandler(converted).review
    return reviewers


class AdmissionHandler:
    """One admission webhook: a method, and the form of its objects."""

    def __init__(self, method: Callable[..., Any], form: ObjectForm, kind: GroupKind, *, mutating: bool) -> None:
        self._method = method
        self._form = form
        self._kind = kind
        self._mutating = mutating
        self._extra = frozenset(inspect.signature(method).parameters) & {"old", "request"}

    async def review(self, body: Any) -> Json:
        """Return the answered AdmissionReview. Raises MalformedReview."""
        asked = _request_of(body, _ADMISSION, "AdmissionReview")
        request = AdmissionRequest(asked)
        response: Json = {"uid": asked["uid"], "allowed": True}
        try:
            if patch := await self._patch(request):
                response |= {"patchType": "JSONPatch", "patch": base64.b64encode(orjson.dumps(patch)).decode()}
        except Denied as error:
            status = {"message": error.message, "reason": error.reason, "code": error.code}
            response |= {"allowed": False, "status": {"metadata": {}, "status": "Failure", **status}}
        except StatusError as error:
            status = {key: value for key, value in error.status.items() if key not in ("kind", "apiVersion")}
            response |= {"allowed": False, "status": status}
        if request.warnings:
            response["warnings"] = request.warnings
        if request.audit_annotations:
            response["auditAnnotations"] = request.audit_annotations
        return {"kind": "AdmissionReview", "apiVersion": _ADMISSION, "response": response}

    async def _patch(self, request: AdmissionRequest) -> list[Json]:
        """Call the method, and return its changes as JSON patch operations. Raises StatusError, Denied."""
        new, old = request.json.get("object"), request.json.get("oldObject")
        original: Json = new if new is not None else old or {}
        obj = self._form.read(copy_json(original))
        before = self._form.read(copy_json(old)) if old is not None and "old" in self._extra else None
        result = await self._call(obj, before, request)
        if not self._mutating or new is None:
            return []
        changed = self._form.write(obj if result is None else result)
        if not changed.get("metadata"):  # a new instance
            changed = {**changed, "metadata": original.get("metadata") or {}}
        return list(json_patch(original, changed))

    async def _call(self, obj: Any, old: Any, request: AdmissionRequest) -> Any:
        given = {"old": old, "request": request}
        result = self._method(obj, **{name: given[name] for name in self._extra})
        if inspect.isawaitable(result):
            result = await result
        if self._mutating and not inspect.isgenerator(result) and not inspect.isasyncgen(result):
            return result
        errors: list[Any] = [each async for each in result] if inspect.isasyncgen(result) else [*(result or ())]
        if unusable := [error for error in errors if not isinstance(error, FieldError)]:
            raise TypeError(f"{self._method.__qualname__} must return field errors, not {unusable[0]!r}")
        if errors:
            reviewed = request.json.get("object") or request.json.get("oldObject") or {}
            raise Invalid.of(self._kind, name_of(reviewed), errors)
        return None


@dataclass(frozen=True, slots=True)
class Conversion:
    """One declared conversion between two versions of a kind."""

    method: Callable[[Any], Any]
    read: Callable[[Json], Any] = deepcopy
    write: Callable[[Any], Json] = dict


class ConversionHandler:
    """All conversions of an operator: (group, kind) -> (from version, to version) -> conversion."""

    def __init__(self, conversions: Mapping[GroupKind, Mapping[tuple[str, str], Conversion]]) -> None:
        self._conversions = conversions

    async def review(self, body: Any) -> Json:
        """Return the answered ConversionReview. Raises MalformedReview."""
        asked = _request_of(body, _CONVERSION, "ConversionReview")
        response: Json = {"uid": asked["uid"]}
        try:
            objects = [await self._convert(obj, asked["desiredAPIVersion"]) for obj in asked.get("objects") or ()]
            response |= {"convertedObjects": objects, "result": {"metadata": {}, "status": "Success"}}
        except (PilothouseError, ValueError) as error:
            result = {"metadata": {}, "status": "Failure", "message": str(error)}
            response |= {"convertedObjects": [], "result": result}
        return {"kind": "ConversionReview", "apiVersion": _CONVERSION, "response": response}

    async def _convert(self, obj: Json, api_version: str) -> Json:
        """Return the object in the other version. Raises MalformedReview if no path leads there."""
        group, kind = api_version.rpartition("/")[0], str(obj.get("kind") or "")
        known = self._conversions.get(GroupKind(group, kind), {})
        original = obj
        for step in _steps(known, version_of(obj["apiVersion"]), version_of(api_version), kind):
            conversion = known[step]
            result = conversion.method(conversion.read(deepcopy(obj)))
            if inspect.isawaitable(result):
                result = await result
            obj = {**conversion.write(result), "apiVersion": f"{group}/{step[1]}", "kind": kind}
            obj["metadata"] = _kept_metadata(original.get("metadata") or {}, obj.get("metadata") or {})
        return obj


def _steps(known: Mapping[tuple[str, str], Any], source: str, target: str, kind: str) -> list[tuple[str, str]]:
    """Return the shortest path of conversions. Raises MalformedReview."""
    paths: deque[tuple[str, list[tuple[str, str]]]] = deque([(source, [])])
    seen = {source}
    while paths:
        version, path = paths.popleft()
        if version == target:
            return path
        for edge in known:
            if edge[0] == version and edge[1] not in seen:
                seen.add(edge[1])
                paths.append((edge[1], [*path, edge]))
    raise MalformedReview(f"{kind} cannot be converted from {source} to {target}: declare it with @converting")


def _kept_metadata(original: Json, converted: Json) -> Json:
    """Return the original metadata with the labels and annotations of the converted object, if it has any."""
    return original | {name: converted[name] for name in ("labels", "annotations") if converted.get(name) is not None}


def _request_of(body: Any, api_version: str, kind: str) -> Json:
    """Return the request of a review. Raises MalformedReview."""
    if not isinstance(body, dict) or (body.get("apiVersion"), body.get("kind")) != (api_version, kind):
        found = (body.get("apiVersion"), body.get("kind")) if isinstance(body, dict) else type(body).__name__
        raise MalformedReview(f"expected a {kind} of {api_version}, got {found}")
    request = body.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
        raise MalformedReview(f"the {kind} has no request with a uid")
    return request


def json_patch(before: Json, after: Json, path: str = "") -> Iterator[Json]:
    """Yield the operations of an RFC 6902 patch. Lists of different lengths are replaced as a whole.

    >>> list(json_patch({"a": 1, "b": [1]}, {"b": [2]}))
    [{'op': 'remove', 'path': '/a'}, {'op': 'replace', 'path': '/b/0', 'value': 2}]
    """
    for key in [key for key in before if key not in after]:
        yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, value in after.items():
        at = f"{path}/{_escaped(key)}"
        if key not in before:
            yield {"op": "add", "path": at, "value": value}
        else:
            yield from _changed(before[key], value, at)


def _changed(before: Any, after: Any, path: str) -> Iterator[Json]:
    if deep_equal(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from json_patch(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changed(old, new, f"{path}/{position}")
    else:
        yield {"op": "replace", "path": path, "value": after}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
