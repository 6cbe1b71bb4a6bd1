"""The v3 documents in protobuf: made of the JSON when somebody asks, and kept as long as the JSON says the same."""

from __future__ import annotations

import orjson

from pilothouse.apiserver.openapi.document import Document
from pilothouse.apiserver.openapi.lazy import Lazy


class ProtobufForms:
    _forms: dict[str, tuple[str, Lazy[Document]]]  # by path, of documents that there are: with the tag of the JSON

    def __init__(self) -> None:
        self._forms = {}

    async def of(self, path: str, document: Document) -> Document:
        """Return the form of the document at the path. It has the document's tag."""
        etag, form = self._forms.get(path, ("", None))
        if form is None or etag != document.etag:
            form = Lazy.in_thread(lambda: _encoded(document))
            self._forms[path] = (document.etag, form)
        return await form.get()

    def forget(self, path: str) -> None:
        """There is no such document (any more)."""
        self._forms.pop(path, None)


def _encoded(document: Document) -> Document:
    from pilothouse.apiserver.openapi.gnostic.document import encode_v3_document

    return Document.of(encode_v3_document(orjson.loads(document.plain())), etag=document.etag)
