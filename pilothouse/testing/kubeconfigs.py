"""Kubeconfigs for others who use the same server."""

from __future__ import annotations

from pathlib import Path

from pilothouse.client.config.kubeconfig import read_kubeconfig
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.objects import Json


def kubeconfig_with(source: Path, user: Json, file: Path, *, keep: bool = False) -> Path:
    """Write a kubeconfig for the server of another one's current context, and return its path.

    Its user is `user`; with `keep`, the other's with what `user` says besides.
    """
    config = read_kubeconfig(source)
    context = next(each["context"] for each in config["contexts"] if each["name"] == config["current-context"])
    cluster = next(each for each in config["clusters"] if each["name"] == context["cluster"])
    before = next((each.get("user") or {} for each in config["users"] if each["name"] == context.get("user")), {})
    said = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": "test", "user": {**(before if keep else {}), **user}}],
        "contexts": [{"name": "test", "context": {**context, "user": "test"}}],
        "current-context": "test",
    }
    file.touch(mode=0o600)
    file.write_bytes(emit_yaml(said))
    return file
