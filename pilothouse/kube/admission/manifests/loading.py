"""Decoding of static manifests: strict, with defaults, validated, and named with the static suffix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import orjson

from pilothouse.apiserver.admission.manifest.files import ManifestDocument, ManifestError
from pilothouse.kube.admissionregistration.strategy import GROUP, STATIC_SUFFIX, AdmissionRegistrationStrategy
from pilothouse.machinery.codec.body_errors import BodyError, strict_error
from pilothouse.machinery.codec.decoder import Codec, DecodedBody, decode_any
from pilothouse.machinery.codec.scheme import Scheme
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.status_error import aggregate

_LIST = "List"


def manifest_scheme(name: str) -> Scheme:
    """Return the scheme of a loader, under the file name in upstream's messages."""
    return Scheme(name, only=frozenset({GROUP}), unversioned=frozenset({_LIST, "Status"}))


@dataclass(frozen=True, slots=True)
class ManifestKind:
    """A kind of admissionregistration.k8s.io/v1 in the manifests of a plugin."""

    kind: str
    strategy: AdmissionRegistrationStrategy
    check: Callable[[Json, str], None]
    """Checks the rules for static objects. Raises ManifestError."""


def load_manifests(
    documents: Iterable[ManifestDocument], scheme: Scheme, kinds: Sequence[ManifestKind]
) -> dict[str, list[Json]]:
    """Return the objects by kind and name. Raise ManifestError."""
    loading = _Loading(scheme, {item.kind: item for item in kinds})
    for document in documents:
        try:
            loading.add(document.data, document.file)
        except (BodyError, ManifestError) as error:
            raise ManifestError(f"error loading {document.file}: {error}") from None
    return {kind: [result[name] for name in sorted(result)] for kind, result in loading.found.items()}


class _Loading:
    def __init__(self, scheme: Scheme, kinds: dict[str, ManifestKind]) -> None:
        self._scheme, self._kinds = scheme, kinds
        self.found: dict[str, dict[str, Json]] = {kind: {} for kind in kinds}
        self._files: dict[tuple[str, str], str] = {}  # first file of each (kind, name)

    def add(self, data: bytes, file: str) -> None:
        """Raises BodyError, ManifestError."""
        body = decode_any(data, codec=Codec.JSON if data.startswith(b"{") else Codec.YAML, scheme=self._scheme)
        if body.strict_errors:
            raise BodyError(strict_error(body.strict_errors))
        if body.gvk.kind == _LIST:
            for item in body.obj.get("items") or ():
                self._add_item(orjson.dumps(item), file)
            return
        kind = self._kind_of(body)
        objects = [*_objects(body)]
        for obj in objects:
            _complete(obj, kind)
        for obj in objects:
            self._keep(obj, kind, file)

    def _add_item(self, data: bytes, file: str) -> None:
        try:
            self.add(data, file)
        except BodyError as error:
            raise ManifestError(f"failed to decode list item: {error}") from None

    def _kind_of(self, body: DecodedBody) -> ManifestKind:
        result = self._kinds.get(body.gvk.kind.removesuffix(_LIST))
        if result is None or body.gvk.version != "v1":
            type = self._scheme.type_of(body.gvk)
            raise ManifestError(f"unsupported resource type *{type.node.go_type if type else body.gvk.kind}")
        return result

    def _keep(self, obj: Json, kind: ManifestKind, file: str) -> None:
        name = name_of(obj)
        if not name:
            raise ManifestError(f"resource in file {quote(file)} must have a name")
        if not name.endswith(STATIC_SUFFIX):
            wanted = f"must have a name ending with {quote(STATIC_SUFFIX)}"
            raise ManifestError(f"{quote(name)} in file {quote(file)} {wanted}")
        if before := self._files.get((kind.kind, name)):
            seen = f"(previously seen in {quote(before)})"
            raise ManifestError(f"duplicate name {quote(name)} found in file {quote(file)} {seen}")
        kind.check(obj, file)
        self.found[kind.kind][name], self._files[kind.kind, name] = obj, file


def _objects(body: DecodedBody) -> Iterator[Json]:
    if not body.gvk.kind.endswith(_LIST):
        yield body.obj
        return
    for item in body.obj.get("items") or ():
        yield {**item, "metadata": item.get("metadata") or {}}


def _complete(obj: Json, kind: ManifestKind) -> None:
    kind.strategy.default(obj)
    if errors := [str(error) for error in kind.strategy.validate_configuration(obj)]:
        raise ManifestError(f"{kind.kind} {quote(name_of(obj))}: {aggregate(errors)}")
