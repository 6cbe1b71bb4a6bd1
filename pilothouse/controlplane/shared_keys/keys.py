"""The shared keys as files, in kubeadm's layout, and the order in which they are written.

    ca.crt  ca.key                       the CA: all certificates that are trusted, and the key that issues
    front-proxy-ca.crt  -ca.key          the same of front proxies
    sa.pub  sa.key                       the same of service account tokens
    ca-next.key …                        the key that will issue, once everybody trusts it
    ca-cross.crt                         the new CA's certificate by the old one
    retired.crt                          the certificates that are trusted no more

Every state between two writes of a change is one that servers can work with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

from pilothouse.machinery.whole_files import PRIVATE, PUBLIC, make_directory, write_atomically

SharedKeys: TypeAlias = Mapping[str, bytes]
"""The content of the files by their names."""

CROSS: Final = "ca-cross.crt"
RETIRED: Final = "retired.crt"

NAMES: Final = (
    *("ca-next.key", "front-proxy-ca-next.key", "sa-next.key"),
    *("ca.key", "front-proxy-ca.key", "sa.key"),
    *(CROSS, RETIRED),
    *("ca.crt", "front-proxy-ca.crt", "sa.pub"),
)
"""In the order in which they are written: a key is there before anybody is told to trust it, and a certificate that is
missing can be made from its key."""

_NEEDED: Final = ("ca.crt", "front-proxy-ca.crt", "sa.key", "sa.pub")
"""An authority whose key is elsewhere is trusted, and issues nothing."""


def read_keys(folder: Path) -> SharedKeys:
    """Return the files that are there. Raises OSError."""
    return {name: (folder / name).read_bytes() for name in NAMES if (folder / name).exists()}


def write_keys(keys: SharedKeys, folder: Path) -> None:
    """Make the files those of `keys`: what differs is written, keys for their owner only, and what is gone is deleted.
    Raises OSError."""
    make_directory(folder)
    before = read_keys(folder)
    for name in NAMES:
        if name in keys and keys[name] != before.get(name):
            write_atomically(folder / name, keys[name], mode=PRIVATE if name.endswith(".key") else PUBLIC)
    for name in before.keys() - keys.keys():
        (folder / name).unlink()


def are_complete(keys: SharedKeys) -> bool:
    return all(name in keys for name in _NEEDED)


def completed(keys: SharedKeys, scratch: Path) -> SharedKeys:
    """Return these keys and, made anew, those that are missing. They are made in a folder below `scratch`, which is
    gone afterwards. Raises CertificateError where they do not fit together, OSError."""
    from tempfile import TemporaryDirectory

    from pilothouse.controlplane.certificates.keep import keep_shared_keys

    with TemporaryDirectory(dir=scratch, prefix=".keys-") as folder:
        write_keys(keys, Path(folder))
        keep_shared_keys(Path(folder))
        return read_keys(Path(folder))
