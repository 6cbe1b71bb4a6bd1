"""The messages that a user meets in the first hour: each names the thing, the problem and the next step."""

from __future__ import annotations

import gc
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from serving_process import ServeProcess
from worker_processes import WorkersServer

from pilothouse.cli.main import GROUPS, main
from pilothouse.machinery import release

PILOTHOUSE = [sys.executable, "-m", "pilothouse.cli.main"]
NOWHERE = "/dev/null/nowhere"
"""No user can create anything below a device, not even root."""
ENDS_AFTER = 120.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """A server without --testing, for the tests that change nothing."""
    process = ServeProcess(tmp_path_factory.mktemp("server"))
    yield process
    process.close()


@pytest.fixture(autouse=True)
def _clean_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo the set-up of `serve`, which logs to the stderr of its test and disables the collector until it is ready."""
    for variable in ("KUBECONFIG", "XDG_DATA_HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    gc.enable()
    root.handlers[:] = handlers
    root.setLevel(level)


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit code and stderr of a command that must fail."""
    try:
        code = main(words)
    except SystemExit as end:  # argparse
        code = int(end.code or 0)
    assert code != 0
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("serve --secure-prot=1", "unknown flag: --secure-prot; did you mean --secure-port?"),
        ("serve --simulated-node=1", "unknown flag: --simulated-node; did you mean --simulated-nodes?"),
        ("envtest kube-apiserver --etcd-server=x", "unknown flag: --etcd-server; did you mean --etcd-servers?"),
        ("sevre", 'unknown command sevre for "pilothouse"; did you mean serve?'),
        ("--verison", 'unknown flag: --verison for "pilothouse"; did you mean --version?'),
        ("top --intervall=1", "unknown flag: --intervall; did you mean --interval?"),
        ("rbac --from-recordng=x", "unknown flag: --from-recordng; did you mean --from-recording?"),
        ("snapshot exprt", 'unknown command "exprt" for "pilothouse snapshot"; did you mean export?'),
        ("snapshot save x --kubeconfg=y", "unknown flag: --kubeconfg; did you mean --kubeconfig?"),
        ("pki rotate front-proxi --step=trust", "service-account; did you mean front-proxy?"),
        ("serve --sail", "unknown flag: --sail\n"),
        ("sail", 'unknown command sail for "pilothouse"\n'),
    ],
)
def test_an_unknown_flag_or_command_is_refused_with_the_nearest_known_name(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(words.split(), capsys)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("serve --secure-port=abc", 'invalid argument "abc" for "--secure-port" flag: strconv.ParseInt: parsing "abc"'),
        ("serve --concurrent-gc-syncs=x", 'invalid argument "x" for "--concurrent-gc-syncs" flag: strconv.ParseInt'),
        ("serve --workers=abc", 'invalid value "abc" for --workers: expected a whole number from 1 to 256, or auto'),
        ("serve --simulated-nodes=x", 'invalid value "x" for --simulated-nodes: expected a whole number'),
        ("serve --simulated-nodes=-1", 'invalid value "-1" for --simulated-nodes: expected a whole number, 0 or more'),
        ("serve --simulation-delay=1", 'invalid value "1" for --simulation-delay: expected a duration such as 500ms'),
        ("serve --testing=maybe", 'invalid value "maybe" for --testing: expected true or false'),
        ("console --port=http", 'invalid value "http" for --port: expected a whole number'),
        ("top --interval=0", 'invalid value "0" for --interval: expected a number of seconds from 0.1 to 3600'),
        ("validate x -o xml", 'invalid value "xml" for -o/--output: expected one of text, json, junit, github'),
    ],
)
def test_a_bad_value_is_refused_in_plain_words_except_for_upstreams_flags(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(words.split(), capsys)[1]


@pytest.mark.parametrize(
    ("flags", "home", "path"),
    [
        ([f"--data-dir={NOWHERE}"], "/tmp", NOWHERE),
        ([f"--data-dir={NOWHERE}", "--workers=2"], "/tmp", NOWHERE),
        ([], NOWHERE, f"{NOWHERE}/.local/share/pilothouse"),
    ],
)
def test_an_unusable_data_directory_is_named_with_its_flag(
    flags: list[str], home: str, path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", home)
    _, said = refused(["serve", "--secure-port=0", *flags], capsys)
    wanted = f"the data directory {path} is not usable: Not a directory; choose a writable directory with --data-dir"
    assert said.endswith(f"Error: {wanted}\n")


@pytest.mark.parametrize(
    "words",
    [
        "top",
        "console --no-open",
        "doctor apiservice",
        "rbac --from-recording=x",
        "snapshot save x",
        "backup x",
        "check",
    ],
)
def test_a_missing_kubeconfig_is_named_with_its_variable(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/missing")
    assert f"Error: $KUBECONFIG names {tmp_path}/missing, which does not exist" in refused(words.split(), capsys)[1]


def test_rbac_names_the_flag_that_the_server_was_started_without(
    server: ServeProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = f"--kubeconfig={server.data_dir}/admin.kubeconfig"
    _, said = refused(["rbac", "--from-recording=x", kubeconfig], capsys)
    url = f"https://127.0.0.1:{server.port}"
    assert said == f"Error: the server at {url} serves no recordings: start it with `pilothouse serve --testing`\n"


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ("doctor", "pilothouse doctor apiservice v1beta1.metrics.k8s.io"),
        ("new", "pilothouse new server wardle --group wardle.example.com"),
        ("snapshot", "pilothouse snapshot save cluster.snapshot"),
        ("test", "pilothouse test policy cases.yaml"),
        ("pki", "pilothouse pki show"),
        ("envtest", "export KUBEBUILDER_ASSETS=$(pilothouse envtest path)"),
    ],
)
def test_a_command_without_its_subcommand_shows_usage_and_an_example(
    command: str, example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = refused([command], capsys)
    assert code == 2
    assert said.startswith(f"usage: pilothouse {command} ")
    assert f"Example:\n  {example}\n" in said
    assert f'Error: "pilothouse {command}" needs a command: ' in said


def test_the_message_about_a_damaged_store_has_a_command_that_restores_a_backup(
    server: ServeProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup, data = tmp_path / "backup file", tmp_path / "data"
    assert main(["backup", str(backup), "--data-dir", str(server.data_dir)]) == 0
    assert main(["restore", str(backup), "--data-dir", str(data)]) == 0
    (data / "store/store.db").write_bytes(b"garbage, and more of it\n" * 1000)
    _, said = refused(["serve", "--secure-port=0", "--data-dir", str(data)], capsys)
    found = re.search(r"store\.db cannot be read: file is not a database; to restore a backup, run: (.*)\n", said)
    assert found
    command = found[1].replace("BACKUP_FILE", shlex.quote(str(backup)))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, shell=True, check=True, capture_output=True, env={**os.environ, "PATH": path})
    assert main(["check", "--data-dir", str(data)]) == 0


def test_waiting_for_etcd_is_logged_with_its_address_and_the_time_limit(tmp_path: Path) -> None:
    command = [*PILOTHOUSE, "serve", "--secure-port=0", f"--data-dir={tmp_path}", "--etcd-servers=http://127.0.0.1:1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next((line for line in process.stderr if "waiting for etcd" in line), "")
        process.kill()
    assert line.endswith("waiting for etcd at http://127.0.0.1:1: no answer after 2s, giving up after 60s\n")


@pytest.mark.parametrize(
    ("program", "version"),
    [("etcd", "etcd Version: 3."), ("kube-apiserver", f"Kubernetes {release.RELEASES[release.DEFAULT].git_version}\n")],
)
def test_programs_of_envtest_print_their_version_and_end(tmp_path: Path, program: str, version: str) -> None:
    assert main(["envtest", "path", "--dir", str(tmp_path)]) == 0
    ended = subprocess.run([tmp_path / program, "--version"], capture_output=True, text=True, timeout=ENDS_AFTER)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(version)


@pytest.mark.parametrize("kind", [ServeProcess, WorkersServer])
def test_a_second_ctrl_c_ends_every_process_at_once(kind: type[ServeProcess], tmp_path: Path) -> None:
    running = kind(tmp_path, "--shutdown-delay-duration=1h")
    try:
        children = [*running.processes().values()] if isinstance(running, WorkersServer) else []
        running.signal(signal.SIGINT)
        _until(lambda: "Received SIGINT: stopping; a second signal (Ctrl-C) stops at once" in running.errors())
        while running.process.poll() is None:  # a signal too close to the first counts as the same
            running.signal(signal.SIGINT)
            time.sleep(0.05)
        assert running.wait() == 128 + signal.SIGINT
        assert "Received SIGINT again: stopping now" in running.errors()
        assert not any(WorkersServer.lives(pid) for pid in children)
    finally:
        running.close()


def _until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + ENDS_AFTER
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_the_help_lists_every_command_under_its_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for title, commands in GROUPS.items():
        block = shown.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in block.splitlines()] == [*commands]


def test_ctrl_c_before_a_command_has_handlers_ends_it_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("pilothouse.cli.version.main", interrupted)
    assert main(["version"]) == 130
    assert capsys.readouterr().err == "Interrupted\n"


def test_a_user_without_a_home_is_told_to_choose_a_data_directory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    _, said = refused(["serve"], capsys)
    assert said.endswith("Error: this user has no home directory: choose a data directory with --data-dir\n")
