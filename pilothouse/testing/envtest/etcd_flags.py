"""The command line of etcd, as far as a stand-in goes by it.

`-name value` and `--name=value` mean the same, and what is not given comes from ETCD_NAME in the environment. Flags
that say how etcd stores, elects and logs are taken, too: there is nothing here that they could change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from pilothouse.machinery.dataclass import dataclass

_DEFAULTS = {
    "listen-client-urls": "http://localhost:2379",
    "listen-peer-urls": "http://localhost:2380",
    "name": "default",
    "data-dir": "",
}

USAGE = """Stands in for etcd where tests start one: healthy, but the objects are kept by Pilothouse itself.

Usage:
  etcd [flags]

Flags:
  --advertise-client-urls 'http://localhost:2379'
        Taken, as all flags of etcd are; only those that are described here have an effect.
  --data-dir '${name}.etcd'
        Where the objects are kept.
  --listen-client-urls 'http://localhost:2379'
        Where to answer /health and /version.
  --listen-peer-urls 'http://localhost:2380'
        Ports to hold, as etcd would.
  --name 'default'
        The name of this member.
  --unsafe-no-fsync 'false'
        Taken: nothing here waits for the disk.
"""


class UsageError(Exception):
    """The command line can not be followed; the message says why."""


@dataclass(frozen=True, slots=True)
class EtcdFlags:
    client_urls: list[SplitResult]
    peer_urls: list[SplitResult]
    data_dir: Path


def read_flags(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> EtcdFlags:
    """Raises UsageError."""
    given = dict(_given(arguments))

    def value(name: str) -> str:
        return given.get(name) or environment.get(f"ETCD_{name.upper().replace('-', '_')}") or _DEFAULTS[name]

    return EtcdFlags(
        client_urls=_urls("listen-client-urls", value("listen-client-urls")),
        peer_urls=_urls("listen-peer-urls", value("listen-peer-urls")),
        data_dir=Path(value("data-dir") or f"{value('name')}.etcd").absolute(),
    )


def _given(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Only switches stand alone, and no value of etcd's begins with a dash: so no list of switches is needed."""
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise UsageError(f"'{word}' is not a valid flag")
        if not equals:
            value = words.pop(0) if words and not words[0].startswith("-") else "true"
        yield name, value


def _urls(flag: str, text: str) -> list[SplitResult]:
    urls = [urlsplit(url) for url in text.split(",")]
    for url in urls:
        if url.scheme != "http" or not url.hostname:
            raise UsageError(
                f"--{flag}: {url.geturl()} is not of the form http://host:port, which is all there is here"
            )
    return urls
