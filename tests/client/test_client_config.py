"""kubeconfig files, in-cluster configuration, tokens and exec plugins."""

from __future__ import annotations

import base64
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilothouse.client.config.credentials import ExecPlugin, StaticCredentials, TokenFile, credential_source
from pilothouse.client.config.kubeconfig import load_config, load_in_cluster, load_kubeconfig
from pilothouse.client.config.model import ClientConfig, ConfigError, ExecConfig
from pilothouse.client.fake_clock import FakeClock
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.objects import Json


def kubeconfig(*, cluster: Json | None = None, user: Json | None = None, context: Json | None = None) -> Json:
    return {
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://example:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **(context or {})}}],
    }


def write(path: Path, config: Json) -> Path:
    path.write_bytes(emit_yaml(config))
    return path


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_data_in_a_kubeconfig_is_decoded_and_files_are_found_beside_it(tmp_path: Path) -> None:
    cluster = {"certificate-authority-data": b64("CA"), "tls-server-name": "name", "proxy-url": "http://p"}
    user = {"client-certificate": "pki/cert.pem", "client-key-data": b64("KEY"), "tokenFile": "/abs/token"}
    config = load_kubeconfig(write(tmp_path / "config", kubeconfig(cluster=cluster, user=user)))
    assert config.host == "https://example:6443"
    assert config.tls.ca_data == b"CA"
    assert config.tls.cert_file == tmp_path / "pki/cert.pem"
    assert config.tls.key_data == b"KEY"
    assert config.tls.server_name == "name"
    assert config.token_file == Path("/abs/token")
    assert config.proxy_url == "http://p"
    assert config.namespace == "default"
    assert "KEY" not in repr(config)


def test_a_context_can_be_chosen_and_names_its_namespace(tmp_path: Path) -> None:
    both = kubeconfig(context={"namespace": "mine"})
    both["contexts"].append({"name": "other", "context": {"cluster": "c"}})
    file = write(tmp_path / "config", both)
    assert load_kubeconfig(file).namespace == "mine"
    assert load_kubeconfig(file, context="other").namespace == "default"


def test_impersonation_and_basic_credentials_are_read(tmp_path: Path) -> None:
    user = {"as": "jane", "as-groups": ["a", "b"], "as-user-extra": {"scopes": ["x", "y"]}, "username": "n"}
    config = load_kubeconfig(write(tmp_path / "config", kubeconfig(user=user)))
    assert config.impersonate.user == "jane"
    assert config.impersonate.groups == ("a", "b")
    assert config.impersonate.extra == (("scopes", "x"), ("scopes", "y"))
    assert config.username == "n"


def test_of_several_files_the_first_that_says_something_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path / "one", {"current-context": "here", "users": [{"name": "u", "user": {"token": "one"}}]})
    second = write(tmp_path / "two", kubeconfig(user={"token": "two"}) | {"current-context": "gone"})
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'missing'}:{second}")
    config = load_kubeconfig()
    assert config.token == "one"
    assert config.host == "https://example:6443"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-context": ""}, "no current context"),
        ({"current-context": "nope"}, "context 'nope' does not exist"),
        ({"clusters": []}, "cluster 'c' does not exist"),
        ({"clusters": [{"name": "c", "cluster": {}}]}, "has no server"),
        ({"users": [{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}]}, "auth-provider is no longer"),
        ({"users": [{"name": "u", "user": {"client-key-data": "%%"}}]}, "client-key-data is not base64"),
    ],
)
def test_a_kubeconfig_that_can_not_be_used_says_why(tmp_path: Path, change: Json, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_kubeconfig(write(tmp_path / "config", kubeconfig() | change))


def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the kubeconfig .*missing: No such file"):
        load_kubeconfig(tmp_path / "missing")
    (tmp_path / "list").write_text("- a")
    with pytest.raises(ConfigError, match="not a kubeconfig"):
        load_kubeconfig(tmp_path / "list")


def test_a_pod_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConfigError, match="not a pod"):
        load_in_cluster(tmp_path)
    for name, text in (("token", "t"), ("namespace", "mine\n"), ("ca.crt", "CA")):
        (tmp_path / name).write_text(text)
    config = load_in_cluster(tmp_path)
    assert config.host == "https://[fd00::1]:443"
    assert config.namespace == "mine"
    assert config.token_file == tmp_path / "token"
    assert config.tls.ca_file == tmp_path / "ca.crt"


def test_a_kubeconfig_goes_before_the_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "config", kubeconfig())))
    assert load_config().host == "https://example:6443"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match=r"\$KUBECONFIG names .*missing, which does not exist; this is not a pod"):
        load_config()


def test_without_a_kubeconfig_the_variable_and_the_default_file_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/one:{tmp_path}/two")
    with pytest.raises(ConfigError, match=rf"\$KUBECONFIG names {tmp_path}/one, {tmp_path}/two, which do not exist"):
        load_kubeconfig()
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=rf"{tmp_path}/.kube/config does not exist, and \$KUBECONFIG is not set"):
        load_kubeconfig()


async def test_a_token_file_is_read_again_after_a_minute_or_when_the_token_is_refused(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "token"
    path.write_text("one\n")
    tokens = TokenFile(path, clock)
    first = await tokens.get()
    path.write_text("two")
    clock.advance(59)
    assert (await tokens.get()).token == "one"
    clock.advance(1)
    assert (await tokens.get()).token == "two"
    path.write_text("three")
    tokens.rejected(first)
    assert (await tokens.get()).token == "two"
    tokens.rejected(await tokens.get())
    assert (await tokens.get()).token == "three"
    path.unlink()
    clock.advance(60)
    assert (await tokens.get()).token == "three"


async def test_a_token_file_that_never_was_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="failed to read the token file"):
        await TokenFile(tmp_path / "missing").get()
    (tmp_path / "empty").write_text("")
    with pytest.raises(ConfigError, match="empty"):
        await TokenFile(tmp_path / "empty").get()


def test_the_source_of_credentials_follows_the_configuration(tmp_path: Path) -> None:
    plugin = ExecConfig(command="x", api_version="client.authentication.k8s.io/v1")
    assert isinstance(credential_source(ClientConfig(host="h", token_file=tmp_path, token="t")), TokenFile)
    assert isinstance(credential_source(ClientConfig(host="h", exec=plugin, token="t")), StaticCredentials)
    assert isinstance(credential_source(ClientConfig(host="h", exec=plugin)), ExecPlugin)


PLUGIN = """#!{python}
import json, os, sys
runs = {folder!r} + "/runs"
with open(runs, "a") as file: file.write("x")
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
count = len(open(runs).read())
status = {{"token": f"token-{{count}}", **json.loads(os.environ.get("EXTRA", "{{}}"))}}
with open({folder!r} + "/info", "w") as file: json.dump([info, sys.argv[1:]], file)
print(json.dumps({{"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": status}}))
"""


def plugin(tmp_path: Path, **options: Any) -> ExecConfig:
    script = tmp_path / "plugin"
    script.write_text(PLUGIN.format(python=sys.executable, folder=str(tmp_path)))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    given: dict[str, Any] = {"command": str(script), "api_version": "client.authentication.k8s.io/v1", **options}
    return ExecConfig(**given)


async def test_a_plugin_runs_once_and_again_when_its_token_has_expired_or_is_refused(tmp_path: Path) -> None:
    clock = FakeClock(wall=1_000_000_000)
    extra = '{"expirationTimestamp": "2001-09-09T01:56:40Z"}'  # 600 seconds later
    source = ExecPlugin(plugin(tmp_path, env=(("EXTRA", extra),), args=("a", "b")), clock)
    assert (await source.get()).token == "token-1"
    clock.advance(599)
    first = await source.get()
    assert first.token == "token-1"
    clock.advance(1)
    assert (await source.get()).token == "token-2"
    source.rejected(first)
    assert (await source.get()).token == "token-3"
    info, arguments = yaml.safe_load((tmp_path / "info").read_text())
    assert arguments == ["a", "b"]
    assert info["spec"] == {"interactive": False}


async def test_a_plugin_that_asks_is_told_of_the_cluster(tmp_path: Path) -> None:
    script = plugin(tmp_path).command
    (tmp_path / "ca").write_text("CA")
    cluster = {
        "certificate-authority": "ca",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
    }
    spec = {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1", "provideClusterInfo": True}
    file = write(tmp_path / "config", kubeconfig(cluster=cluster, user={"exec": spec}))
    config = load_kubeconfig(file)
    assert config.exec is not None
    assert Path(config.exec.command) == Path(script)
    await ExecPlugin(config.exec).get()
    info, _ = yaml.safe_load((tmp_path / "info").read_text())
    assert info["spec"]["cluster"] == {
        "server": "https://example:6443",
        "certificate-authority-data": b64("CA"),
        "config": {"audience": "x"},
    }


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ('{"token": ""}', "didn't return a token or cert/key pair"),
        ('{"clientCertificateData": "C"}', "only certificate or key"),
    ],
)
async def test_a_plugin_that_prints_no_credentials_is_an_error(tmp_path: Path, extra: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await ExecPlugin(plugin(tmp_path, env=(("EXTRA", extra),))).get()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": "/missing/plugin", "install_hint": "get it"}, "not found\n\nget it"),
        ({"command": "false"}, "failed with exit code 1"),
        ({"command": "true"}, "decoding stdout"),
        ({"command": "echo", "args": ("{}",)}, "plugin returned None"),
        ({"command": "true", "interactive_mode": "Always"}, "not a terminal"),
        ({"command": "true", "interactive_mode": "Odd"}, "unknown interactiveMode"),
    ],
)
async def test_a_plugin_that_fails_says_how(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await ExecPlugin(plugin(tmp_path, **options)).get()


def test_a_plugin_of_an_unknown_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="invalid apiVersion"):
        ExecPlugin(plugin(tmp_path, api_version="client.authentication.k8s.io/v1alpha1"))
