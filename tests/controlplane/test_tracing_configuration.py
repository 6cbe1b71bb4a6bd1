"""--tracing-config-file: read and refused in upstream's words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pilothouse.controlplane.options.observability import TracingOptions
from pilothouse.controlplane.tracing import TracingConfiguration, read_tracing_configuration
from pilothouse.machinery.installation import extra_command

HEAD = "apiVersion: apiserver.config.k8s.io/{}\nkind: TracingConfiguration\n"


def read(folder: Path, text: str) -> TracingConfiguration:
    file = folder / "tracing.yaml"
    file.write_text(text)
    return read_tracing_configuration(str(file))


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_every_version_is_read_and_both_fields_may_be_left_out(tmp_path: Path, version: str) -> None:
    head = HEAD.format(version)
    assert read(tmp_path, head) == TracingConfiguration(None, 0)
    full = read(tmp_path, f"{head}endpoint: unix:///run/otel.sock\nsamplingRatePerMillion: 100\n")
    assert full == TracingConfiguration("unix:///run/otel.sock", 100)


SCHEME = "Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md"
REFUSED = [
    ("samplingRatePerMillion: -1", "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"),
    (
        "samplingRatePerMillion: 1000001",
        "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one "
        "million",
    ),
    ("endpoint: http://a:1", f'endpoint: Invalid value: "http://a:1": unsupported scheme: http.  {SCHEME}'),
]


@pytest.mark.parametrize(("line", "why"), REFUSED)
def test_what_makes_no_sense_is_refused(tmp_path: Path, line: str, why: str) -> None:
    with pytest.raises(ValueError) as refused:
        read(tmp_path, HEAD.format("v1") + line)
    assert str(refused.value) == f"failed to validate tracing configuration: {why}"


def test_a_field_that_nobody_knows_and_another_kind_are_refused(tmp_path: Path) -> None:
    begin = "failed to read tracing config: unable to decode tracing configuration data: "
    with pytest.raises(ValueError, match=f'{begin}strict decoding error: unknown field "rate"'):
        read(tmp_path, HEAD.format("v1") + "rate: 1")
    with pytest.raises(ValueError, match=f'{begin}no kind "TracingConfiguration" is registered'):
        read(tmp_path, HEAD.format("v2"))


def test_a_server_without_the_sdk_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tracing.yaml"
    file.write_text(HEAD.format("v1"))
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    problems = [*TracingOptions(str(file)).validate()]
    assert problems == [f"traces are sent by OpenTelemetry's SDK, which is not installed: {extra_command('tracing')}"]
