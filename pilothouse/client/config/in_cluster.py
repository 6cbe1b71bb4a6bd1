"""In-cluster configuration: service account token and API server address of a pod."""

from __future__ import annotations

import os
from pathlib import Path

from pilothouse.client.config.kubeconfig import existing_files, load_kubeconfig, missing_kubeconfig
from pilothouse.client.config.model import ClientConfig, ConfigError, TLSConfig

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
