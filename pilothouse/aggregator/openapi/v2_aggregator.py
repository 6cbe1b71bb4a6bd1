"""The specAggregator: the last good OpenAPI v2 document of each APIService's server, in order of priority."""

from __future__ import annotations

from pilothouse.aggregator.download import TIMEOUT
from pilothouse.aggregator.openapi.remote import Ranked, RemoteService, by_priority
from pilothouse.aggregator.openapi.v2_download import DownloadedSpec, download_v2
from pilothouse.apiserver.openapi.document import Document
from pilothouse.machinery.dataclass import dataclass


@dataclass(slots=True, eq=False)
class RemoteSpec(Ranked):
    downloaded: DownloadedSpec | None = None


class SpecAggregator:
    _specs: dict[str, RemoteSpec]  # by the names of the APIServices

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._specs = {}

    def put(self, service: RemoteService) -> None:
        """Adds it, or puts it in the place of the one of the same name."""
        known = self._specs.get(service.name)
        self._specs[service.name] = RemoteSpec(service, known.downloaded if known else None)

    def remove(self, name: str) -> None:
        """Remove the documents of an APIService, if they are there."""
        self._specs.pop(name, None)

    async def update(self, name: str) -> bool:
        """Downloads the document anew, if it has changed. False for one that is not there. Raises DownloadFailed."""
        spec = self._specs.get(name)
        if spec is None:
            return False
        spec.downloaded = await download_v2(spec.service, spec.downloaded, timeout=self._timeout)
        return True

    def documents(self) -> tuple[Document, ...]:
        """Return the documents, the most important first. One that has not changed is the same object."""
        specs = by_priority(self._specs.values())
        return tuple(spec.downloaded.document for spec in specs if spec.downloaded)
