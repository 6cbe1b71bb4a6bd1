"""A kubeconfig with everything in it: kubectl needs no other file."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Final

from pilothouse.machinery.whole_files import PRIVATE, write_atomically

_TEMPLATE: Final = """\
apiVersion: v1
kind: Config
clusters:
- name: pilothouse
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: {cert}
    client-key-data: {key}
contexts:
- name: kubernetes-admin@pilothouse
  context:
    cluster: pilothouse
    user: kubernetes-admin
current-context: kubernetes-admin@pilothouse
preferences: {{}}
"""


def write_kubeconfig(path: Path, *, server_url: str, ca: Path, cert: Path, key: Path) -> None:
    """Written only where it would change, readable for its owner only."""
    content = _TEMPLATE.format(server=server_url, ca=_data(ca), cert=_data(cert), key=_data(key)).encode()
    if not path.exists() or path.read_bytes() != content:
        write_atomically(path, content, mode=PRIVATE)


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
