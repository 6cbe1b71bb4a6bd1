"""Request headers: which front proxies may say in headers who is asking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.controlplane.options.files import missing_files
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import STRING, STRINGS, flag
from pilothouse.machinery.gofmt import quote


@dataclass(frozen=True)
class RequestHeaderOptions:
    title: ClassVar[str] = "request headers"

    client_ca_file: str = flag(
        "requestheader-client-ca-file",
        STRING,
        "",
        "The CA whose client certificates are front proxies. The front proxy CA in --data-dir is one besides, "
        "unless --proxy-client-cert-file is given.",
    )
    allowed_names: tuple[str, ...] = flag(
        "requestheader-allowed-names",
        STRINGS,
        (),
        "The common names that a front proxy's certificate may have. Without it, whatever name.",
    )
    username_headers: tuple[str, ...] = flag(
        "requestheader-username-headers", STRINGS, (), "The headers with the user's name; X-Remote-User is common."
    )
    uid_headers: tuple[str, ...] = flag(
        "requestheader-uid-headers", STRINGS, (), "The headers with the user's uid; X-Remote-Uid is common."
    )
    group_headers: tuple[str, ...] = flag(
        "requestheader-group-headers", STRINGS, (), "The headers with the user's groups; X-Remote-Group is common."
    )
    extra_headers_prefix: tuple[str, ...] = flag(
        "requestheader-extra-headers-prefix",
        STRINGS,
        (),
        "What the names of headers with more about the user begin with; X-Remote-Extra- is common.",
    )

    def validate(self) -> Iterator[str]:
        yield from missing_files({"requestheader-client-ca-file": self.client_ca_file})
        for name, values in self._lists.items():
            if any(not value.strip() for value in values):
                yield f"empty value in {quote(name)}"
        if self.uid_headers and "x-remote-uid" not in map(str.lower, self.uid_headers):
            yield (
                "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - "
                "API aggregation will not work"
            )

    @property
    def _lists(self) -> dict[str, tuple[str, ...]]:
        return {
            "requestheader-username-headers": self.username_headers,
            "requestheader-group-headers": self.group_headers,
            "requestheader-extra-headers-prefix": self.extra_headers_prefix,
            "requestheader-allowed-names": self.allowed_names,
            "requestheader-uid-headers": self.uid_headers,
        }
