"""Objects of the documents: decoded once, lists expanded, with the line of each field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from pilothouse.cli.offline.documents import Checked, Document, Finding, Severity, read_documents
from pilothouse.machinery.codec.yaml import ParsedYaml, parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_TEMPLATE = re.compile(rb"\{\{-?\s*(\.Values|\.Release|\.Chart|include |toYaml |template )")
_DUPLICATE = re.compile(r"line (\d+): (key .*)")
_HELM = "this looks like a Helm template; render it first: helm template CHART | pilothouse validate -"
_SERVER_FIELDS = frozenset({"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"})
_KUSTOMIZE = "kustomize.config.k8s.io/"


@dataclass(eq=False, slots=True)
class Manifest:
    """One object of a document. `prefix` is the path of the object if the document is a list."""

    document: Document
    obj: Json
    prefix: str = ""
    duplicates: tuple[tuple[int, str], ...] = ()
    """Duplicate keys: (line in the file, message of the decoder)."""

    @property
    def file(self) -> str:
        return self.document.file

    @property
    def kind(self) -> str:
        return str(self.obj.get("kind", ""))

    @property
    def group_kind(self) -> tuple[str, str]:
        group, _, version = str(self.obj.get("apiVersion", "")).rpartition("/")
        return (group if version else ""), self.kind

    @property
    def metadata(self) -> Json:
        metadata = self.obj.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def name(self) -> str:
        """Name, or generateName with an ellipsis."""
        return str(self.metadata.get("name") or f"{self.metadata.get('generateName', '')}…")

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace") or "")

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def line(self, path: str = "") -> int:
        """Return the line of a field in the file."""
        whole = f"{self.prefix}.{path}" if self.prefix and path else self.prefix or path
        return self.document.line_of(whole)

    def finding(self, severity: Severity, message: str, *, path: str = "", hint: str = "") -> Finding:
        return Finding(severity, self.file, self.line(path), message, self.subject, path, hint)


def read_manifests(paths: Iterable[str]) -> Iterator[Manifest | Checked]:
    """Yield the objects of the paths, and a failed check for each unreadable document. Raises NothingToRead."""
    for document in read_documents(paths):
        if isinstance(document, Checked):
            yield document
        else:
            yield from manifests_in(document)


def manifests_in(document: Document) -> Iterator[Manifest | Checked]:
    """Yield the objects of one document."""
    try:
        parsed = _parsed(document.data)
    except YamlError as error:
        yield _unreadable(document, error)
        return
    # ConfigMaps and Secrets may contain templates as data.
    is_data = isinstance(parsed.value, dict) and parsed.value.get("kind") in ("ConfigMap", "Secret")
    if (template := _TEMPLATE.search(document.data)) and not is_data:
        line = document.data.count(b"\n", 0, template.start()) + 1
        yield document.refusal("this is a template, not a manifest", line=line, hint=_HELM)
        return
    duplicates = ((int(line), text) for line, text in _DUPLICATE.findall(parsed.strict_error))
    on_lines = tuple((document.line + line - 1, text) for line, text in duplicates)
    yield from _unfolded(document, parsed.value, "", on_lines)


def _parsed(data: bytes) -> ParsedYaml:
    """Parse YAML, or JSON that libyaml rejects (unpaired surrogates). Raises YamlError."""
    try:
        return parse_yaml(data)
    except YamlError:
        try:
            return ParsedYaml(orjson.loads(data))
        except orjson.JSONDecodeError:
            pass
        raise


def _unreadable(document: Document, error: YamlError) -> Checked:
    at = document.data.find(b"{{")
    if at < 0:
        return document.refusal(str(error), line=error.line)
    return document.refusal(str(error), line=document.data.count(b"\n", 0, at) + 1, hint=_HELM)


def _unfolded(
    document: Document, value: Any, prefix: str, duplicates: tuple[tuple[int, str], ...]
) -> Iterator[Manifest | Checked]:
    if not isinstance(value, dict):
        yield document.refusal("a manifest is an object with apiVersion and kind", line=document.lines.of(prefix))
    elif missing := [name for name in ("apiVersion", "kind") if not isinstance(value.get(name), str)]:
        yield document.refusal(f"{' and '.join(missing)} must be set", line=document.lines.of(prefix))
    elif value["apiVersion"].startswith(_KUSTOMIZE):
        hint = "render it first: kubectl kustomize FOLDER | pilothouse validate -"
        yield document.refusal("a kustomization is not a manifest", line=document.lines.of(prefix), hint=hint)
    elif value["kind"].endswith("List") and "items" in value and isinstance(value["items"] or [], list):
        for at, item in enumerate(value["items"] or ()):
            yield from _unfolded(document, _with_kind(item, value), f"{prefix}.items[{at}]".lstrip("."), duplicates)
            duplicates = ()
    else:
        yield Manifest(document, value, prefix, duplicates)


def _with_kind(item: Any, whole: Json) -> Any:
    """Return the item with the kind of a typed list, whose items need not have one."""
    if not isinstance(item, dict) or whole["kind"] == "List":
        return item
    return {"apiVersion": whole["apiVersion"], "kind": whole["kind"].removesuffix("List"), **item}


def as_new(manifest: Manifest) -> Manifest:
    """Return the manifest without server-set metadata."""
    metadata = {key: value for key, value in manifest.metadata.items() if key not in _SERVER_FIELDS}
    return Manifest(manifest.document, {**manifest.obj, "metadata": metadata}, manifest.prefix, manifest.duplicates)
