"""kubeconfig files, located and merged as kubectl does, and the in-cluster configuration of a pod.

The files are those of $KUBECONFIG, or ~/.kube/config. Earlier files take precedence. Relative paths are resolved
against the folder of their file.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pilothouse.client.config.model import ClientConfig, ConfigError, ExecConfig, ImpersonationConfig, TLSConfig
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_VARIABLE = "KUBECONFIG"
_PATHS = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
}


def load_kubeconfig(path: str | Path | None = None, *, context: str = "") -> ClientConfig:
    """Return the configuration of `context` (default: the current context). Raises ConfigError.

    >>> from pilothouse.client import load_kubeconfig
    >>> load_kubeconfig(api.kubeconfig).host == api.url
    True
    """
    files = [Path(path)] if path is not None else existing_files()
    if not files:
        raise ConfigError(missing_kubeconfig())
    merged = merge([read_kubeconfig(file) for file in files])
    if not context and not merged["current-context"]:
        raise ConfigError(f"no current context is set in {_listed(files)}, and no context was requested")
    return config_for(merged, context=context)


@dataclass(frozen=True, slots=True)
class KubeconfigUsers:
    """Users of a kubeconfig without a particular server."""

    by_name: dict[str, ClientConfig]
    """User name → configuration without a host."""
    current: str
    """User of the current context; may be empty."""


def load_users(path: str | Path) -> KubeconfigUsers:
    """Return the users of a kubeconfig. Raises ConfigError."""
    merged = merge([read_kubeconfig(Path(path))])
    context = merged["contexts"].get(merged["current-context"]) or {}
    users = {name: _user_config(name, user) for name, user in merged["users"].items()}
    return KubeconfigUsers(users, context.get("user") or "")


def existing_files() -> list[Path]:
    """Return the existing files of $KUBECONFIG, or ~/.kube/config if that exists."""
    return [file for file in _default_files() if file.exists()]


def missing_kubeconfig() -> str:
    """Return the message for a missing kubeconfig; names the variable and the files."""
    files = _default_files()
    if os.environ.get(_VARIABLE):
        return f"${_VARIABLE} names {_listed(files)}, which {'does' if len(files) == 1 else 'do'} not exist"
    return f"no kubeconfig: {files[0]} does not exist, and ${_VARIABLE} is not set"


def _default_files() -> list[Path]:
    if named := [Path(part) for part in os.environ.get(_VARIABLE, "").split(os.pathsep) if part]:
        return named
    return [Path(os.path.expanduser("~/.kube/config"))]  # Path.home() fails for a user without a home


def _listed(files: Iterable[Path]) -> str:
    return ", ".join(map(str, files))


def merge(configs: Iterable[Json]) -> Json:
    """Merge configurations: the first entry of each name and the first current context win."""
    merged: Json = {"current-context": "", "clusters": {}, "users": {}, "contexts": {}}
    for config in configs:
        merged["current-context"] = merged["current-context"] or config.get("current-context") or ""
        for plural, singular in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            for entry in config.get(plural) or ():
                merged[plural].setdefault(entry["name"], entry.get(singular) or {})
    return merged


def config_for(merged: Json, *, context: str = "") -> ClientConfig:
    name = context or merged["current-context"]
    if not name:
        raise ConfigError("no current context is set, and no context was requested")
    chosen = _entry(merged, "contexts", name)
    cluster = _entry(merged, "clusters", chosen.get("cluster") or "")
    user = _entry(merged, "users", chosen["user"]) if chosen.get("user") else {}
    if not cluster.get("server"):
        raise ConfigError(f"cluster {chosen['cluster']!r} has no server")
    return replace(
        _user_config(chosen.get("user") or "", user, cluster),
        host=cluster["server"],
        namespace=chosen.get("namespace") or "default",
        proxy_url=cluster.get("proxy-url") or "",
        disable_compression=bool(cluster.get("disable-compression")),
    )


def _user_config(name: str, user: Json, cluster: Json | None = None) -> ClientConfig:
    if "auth-provider" in user:
        raise ConfigError(f"user {name!r}: auth-provider is no longer supported, use exec")
    return ClientConfig(
        host="",
        tls=_tls(cluster or {}, user),
        token=user.get("token") or "",
        token_file=_path(user, "tokenFile"),
        username=user.get("username") or "",
        password=user.get("password") or "",
        exec=_exec(user["exec"], cluster or {}) if user.get("exec") else None,
        impersonate=_impersonation(user),
    )


def read_kubeconfig(file: Path) -> Json:
    """Return the file's content with absolute paths. Raises ConfigError."""
    try:
        config = parse_yaml(file.read_bytes()).value or {}
    except OSError as error:
        raise ConfigError(f"cannot read the kubeconfig {file}: {error.strerror or error}") from error
    except YamlError as error:
        raise ConfigError(f"the kubeconfig {file} is not valid YAML: {error}") from error
    if not isinstance(config, dict):
        raise ConfigError(f"{file} is not a kubeconfig")
    for plural, singular in (("clusters", "cluster"), ("users", "user")):
        for entry in config.get(plural) or ():
            part = entry.get(singular) or {}
            fields = _PATHS[singular]
            folder = file.parent
            for field in fields:
                if part.get(field):
                    part[field] = str(folder / part[field])
            command = (part.get("exec") or {}).get("command") or ""
            if os.sep in command:  # a bare name is resolved in $PATH
                part["exec"]["command"] = str(folder / command)
    return config


def _entry(merged: Json, plural: str, name: str) -> Json:
    if name not in merged[plural]:
        raise ConfigError(f"{plural.removesuffix('s')} {name!r} does not exist")
    entry: Json = merged[plural][name]
    return entry


def _tls(cluster: Json, user: Json) -> TLSConfig:
    return TLSConfig(
        ca_data=_data(cluster, "certificate-authority-data"),
        ca_file=_path(cluster, "certificate-authority"),
        cert_data=_data(user, "client-certificate-data"),
        cert_file=_path(user, "client-certificate"),
        key_data=_data(user, "client-key-data"),
        key_file=_path(user, "client-key"),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=cluster.get("tls-server-name") or "",
    )


def _exec(spec: Json, cluster: Json) -> ExecConfig:
    return ExecConfig(
        command=spec.get("command") or "",
        api_version=spec.get("apiVersion") or "",
        args=tuple(spec.get("args") or ()),
        env=tuple((entry["name"], entry["value"]) for entry in spec.get("env") or ()),
        install_hint=spec.get("installHint") or "",
        interactive_mode=spec.get("interactiveMode") or "IfAvailable",
        cluster=_cluster_info(cluster) if spec.get("provideClusterInfo") else None,
    )


def _cluster_info(cluster: Json) -> Json:
    """Return the cluster information for an exec plugin; a CA file is passed as data."""
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
    info = {name: cluster[name] for name in names if cluster.get(name)}
    file = _path(cluster, "certificate-authority")
    if file is not None and "certificate-authority-data" not in info:
        info["certificate-authority-data"] = base64.b64encode(file.read_bytes()).decode()
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info


def _impersonation(user: Json) -> ImpersonationConfig:
    extra = user.get("as-user-extra") or {}
    return ImpersonationConfig(
        user=user.get("as") or "",
        uid=user.get("as-uid") or "",
        groups=tuple(user.get("as-groups") or ()),
        extra=tuple((key, value) for key, values in extra.items() for value in values),
    )


def _data(part: Json, field: str) -> bytes:
    try:
        return base64.b64decode(part.get(field) or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError(f"{field} is not base64: {error}") from error


def _path(part: dict[str, Any], field: str) -> Path | None:
    return Path(part[field]) if part.get(field) else None


SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_in_cluster(folder: Path = SERVICE_ACCOUNT) -> ClientConfig:
    """Return the configuration of the pod. Raises ConfigError outside a cluster.

    >>> from pilothouse.client import load_in_cluster
    >>> from pilothouse.errors import ConfigError
    >>> try:
    ...     load_in_cluster()
    ... except ConfigError:
    ...     print("not in a pod")
    not in a pod
    """
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    token_file = folder / "token"
    if not host or not port or not token_file.exists():
        raise ConfigError("this is not a pod: no KUBERNETES_SERVICE_HOST and PORT, or no service account token")
    namespace = folder / "namespace"
    return ClientConfig(
        host=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "default",
        tls=TLSConfig(ca_file=folder / "ca.crt" if (folder / "ca.crt").exists() else None),
        token_file=token_file,
    )


def load_config(*, context: str = "") -> ClientConfig:
    """Return the kubeconfig's configuration if a kubeconfig exists, else the in-cluster configuration.

    Raises ConfigError if neither exists; the message names $KUBECONFIG and its files.

    >>> import os
    >>> from pilothouse.client import load_config
    >>> os.environ["KUBECONFIG"] = str(api.kubeconfig)
    >>> load_config().host == api.url
    True
    """
    if existing_files():
        return load_kubeconfig(context=context)
    try:
        return load_in_cluster()
    except ConfigError as error:
        raise ConfigError(f"{missing_kubeconfig()}; {error}") from None
