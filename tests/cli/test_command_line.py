"""The command line: help, versions, refusals, and that it stays light."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pilothouse.cli.main import main


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """`serve` sets up the log on the stderr of its test, which is closed afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_without_a_command_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "pilothouse <command> [flags]" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["version"], ["--version"], ["serve", "--version"]])
def test_the_version_names_both_versions(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("Pilothouse ")
    assert "(Kubernetes v1.36." in out


@pytest.mark.parametrize("words", [["--kubernetes-version=1.35"], ["--kubernetes_version", "v1.35.8"]])
def test_the_version_is_that_which_is_chosen(words: list[str]) -> None:
    command = [sys.executable, "-m", "pilothouse.cli.main", "serve", *words, "--version"]
    assert "(Kubernetes v1.35.8)" in subprocess.check_output(command, text=True)


@pytest.mark.parametrize("command", [["validate"], ["test", "cel"]])
def test_an_offline_check_names_the_versions_that_it_knows(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--kubernetes-version=1.20", "a.yaml"])
    assert ended.value.code == 2
    expected = 'Error: invalid value "1.20" for --kubernetes-version: expected one of 1.34, 1.35, 1.36, 1.37\n'
    assert capsys.readouterr().err.endswith(expected)


def test_the_raw_version_has_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--version=raw"]) == 0
    out = capsys.readouterr().out
    assert out.startswith('version.Info{Major:"1", Minor:"36", EmulationMajor:')
    assert 'GitVersion:"v1.36.' in out


def test_the_help_of_serve_has_sections(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Startup flags:" in out
    assert "Generic flags:" in out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["sail"], 'Error: unknown command sail for "pilothouse"'),
        (["--fast"], 'Error: unknown flag: --fast for "pilothouse"'),
        (["serve", "--fast"], "Error: unknown flag: --fast"),
        (["serve", "now"], 'Error: "pilothouse serve" does not take any arguments, got ["now"]'),
        (["serve", "--secure-port"], "Error: flag needs an argument: --secure-port"),
        (["serve", "--vmodule=x"], "Error: --vmodule is not supported by this version"),
        (["serve", "--authorization-mode=Nope"], 'Error: authorization-mode "Nope" is not a valid mode'),
        (
            ["serve", "--version=x"],
            'Error: invalid value "x" for --version: expected true, false or raw',
        ),
        (["serve", "--version=false", "--fast"], "Error: unknown flag: --fast"),
        (
            ["serve", "--kubernetes-version=1.20"],
            'Error: invalid value "1.20" for --kubernetes-version: expected one of 1.34, 1.35, 1.36, 1.37',
        ),
        (["version", "x"], 'Error: "pilothouse version" does not take any arguments, got ["x"]'),
    ],
)
def test_a_refusal_is_one_line_on_stderr(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", line + "\n")


def test_help_and_refusals_import_nothing_heavy() -> None:
    code = (
        "import contextlib, sys\n"
        "from pilothouse.cli.main import main\n"
        "assert main(['serve', '--nope']) == 1 and main(['serve', '--help']) == 0\n"
        "for command in ('envtest', 'new', 'dev', 'manifests', 'docs', 'snapshot', 'console', 'validate', 'test',\n"
        "                'backup', 'restore', 'migrate', 'check'):\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        main([command, '--help'])\n"
        "heavy = {'aiohttp', 'asyncio', 'cryptography', 'grpc', 'orjson', 'prometheus_client', 'uvloop', 'yaml'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "Error: unknown flag: --nope\n")


@pytest.mark.parametrize(
    ("version", "flag", "reason"),
    [
        ("1.34", "--min-compatibility-version=1.33", "unknown flag: --min-compatibility-version"),
        ("1.35", "--tls-curve-preferences=X25519", "unknown flag: --tls-curve-preferences"),
        ("1.36", "--tls-curve-preferences=X25519", "--tls-curve-preferences is not supported by this version"),
        (
            "1.34",
            "--feature-gates=ConstrainedImpersonation=true",
            "unrecognized feature gate: ConstrainedImpersonation",
        ),
        ("1.37", "--emulated-version=1.33", "[emulation version 1.33 is not between [1.34, 1.37.0], minCompat"),
    ],
)
def test_flags_and_gates_are_those_of_the_version(version: str, flag: str, reason: str) -> None:
    command = [sys.executable, "-m", "pilothouse.cli.main", "serve", f"--kubernetes-version={version}", flag]
    refused = subprocess.run(command, text=True, capture_output=True, check=False)
    assert (refused.returncode, refused.stderr.startswith(f"Error: {reason}")) == (1, True), refused.stderr
