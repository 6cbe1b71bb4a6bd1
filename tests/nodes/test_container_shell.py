"""The shell and the programs of simulated containers."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest
from simulated_container import Box

from pilothouse.nodes.containers.files import POD_SPACE
from pilothouse.nodes.containers.shell import CommandNotFound
from pilothouse.nodes.containers.words import NotSupported

SCRIPTS = [
    ("echo hi $COLOR '$COLOR' \"$COLOR ${ME}\"", (0, "hi blue $COLOR blue web\n", "")),
    ("echo -n a; echo -e 'b\\tc'", (0, "ab\tc\n", "")),
    ("X=1; export Y=2; echo $X$Y", (0, "12\n", "")),
    ("false && echo no || echo yes", (0, "yes\n", "")),
    ("true || echo no && echo yes", (0, "yes\n", "")),
    ("false; echo $?; exit 3; echo never", (3, "1\n", "")),
    ("echo out; echo bad >&2", (0, "out\n", "bad\n")),
    ("nope; nope 2>&1", (127, "sh: nope: not found\n", "sh: nope: not found\n")),
    ("printf 'a\\nb\\nc\\n' | tail -n 2 | head -1", (0, "b\n", "")),
    ("echo one > /tmp/f; echo two >> /tmp/f; cat /tmp/f; wc -l < /tmp/f", (0, "one\ntwo\n2\n", "")),
    ("mkdir -p /a/b && cd /a && pwd && ls && test -d b && [ ! -e c ] && echo ok", (0, "/a\nb\nok\n", "")),
    ("touch /tmp/x; rm /tmp/x; ls /tmp; cat /tmp/x", (1, "", "cat: /tmp/x: No such file or directory\n")),
    ("echo hidden > /dev/null # a comment", (0, "", "")),
    ("hostname; whoami; echo $SKY; cat /etc/hostname", (0, "web\nroot\nis blue\nweb\n", "")),
    ("cat", (0, "typed", "")),
    ("printf '%s-%d %%s\\\\n\\n' a 1 b", (0, "a-1 %s\\n\n", "")),
    ("echo -ne 'a\\\\n\\n'", (0, "a\\n\n", "")),
    (
        "printf 'a b\nc' | wc; printf 'a b\n c' | wc -w; printf 'a\nb' | tail -n 1; printf 'a\nb' | head -n 1",
        (0, "1 3 5\n3\nba\n", ""),
    ),
    ("printf 'ab\nbc\ncd' | grep b; echo x | grep y || echo none", (0, "ab\nbc\nnone\n", "")),
    ("[ ! ! -d /tmp ] && test ! -f /tmp && echo yes", (0, "yes\n", "")),
    ("date +%Y%10d | wc -c; exit 4294967299", (3, "9\n", "")),
    ("echo 'open", (2, "", "sh: syntax error: unterminated quoted string\n")),
    ("echo a >", (2, "", "sh: syntax error: expected a file name\n")),
    ("echo x > /no/where", (1, "", "sh: can't create /no/where: No such file or directory\n")),
]


@pytest.mark.parametrize(("script", "expected"), SCRIPTS, ids=[script for script, _ in SCRIPTS])
async def test_scripts(script: str, expected: tuple[int, str, str]) -> None:
    assert await Box().run("sh", "-c", script, stdin=b"typed") == expected


async def test_lines_are_run_as_they_come_until_exit() -> None:
    assert await Box().run("sh", stdin=b"cd /etc\npwd\nexit 4\necho never\n") == (4, "/etc\n", "")


async def test_programs_that_are_not_there_are_not_found() -> None:
    with pytest.raises(CommandNotFound):
        await Box().run("nginx", "-g", "daemon off;")


@pytest.mark.parametrize("script", ["while true; do date; done", "echo $(date)", "if true; then echo x; fi"])
async def test_what_the_shell_does_not_know_it_says(script: str) -> None:
    with pytest.raises(NotSupported):
        await Box().run("sh", "-c", script)


async def test_time_passes_as_the_caller_wants() -> None:
    box = Box()
    assert await box.run("sh", "-c", "sleep 1m; sleep 0.5") == (0, "", "")
    assert box.slept == 60.5


async def test_what_one_writes_the_next_one_reads_until_the_pod_is_gone() -> None:
    box = Box()
    await box.run("sh", "-c", "echo kept > /tmp/f")
    assert (await box.run("cat", "/tmp/f"))[1] == "kept\n"
    box.containers.forget("u")
    assert (await box.run("cat", "/tmp/f"))[0] == 1


def archive(**files: bytes) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as made:
        for name, contents in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(contents)
            made.addfile(member, io.BytesIO(contents))
    return target.getvalue()


async def test_archives_are_unpacked_and_made_as_kubectl_cp_asks() -> None:
    box = Box()
    assert await box.run("tar", "-xmf", "-", "-C", "/tmp/new", stdin=archive(a=b"1", b=b"22")) == (0, "", "")
    assert (await box.run("ls", "/tmp/new"))[1] == "a\nb\n"
    code, out, _ = await box.run_binary("tar", "cf", "-", "/tmp/new")
    assert code == 0
    with tarfile.open(fileobj=io.BytesIO(out)) as made:
        assert made.getnames() == ["tmp/new", "tmp/new/a", "tmp/new/b"]


async def test_archives_do_not_leave_the_container_and_bad_ones_are_refused() -> None:
    box = Box()
    await box.run("tar", "xf", "-", "-C", "/tmp", stdin=archive(**{"../../etc/evil": b"x"}))
    assert (await box.run("cat", "/etc/evil"))[1] == "x"
    code, _, problem = await box.run("tar", "xf", "-", stdin=b"no archive")
    assert code == 1
    assert problem.startswith("tar: corrupted archive")


async def test_archives_are_not_inflated() -> None:
    box = Box()
    bomb = gzip.compress(archive(large=bytes(1 << 20)))
    assert (await box.run("tar", "xzf", "-", "-C", "/tmp", stdin=bomb))[0] == 1
    assert (await box.run("ls", "/tmp")) == (0, "", "")


async def test_scripts_are_bounded() -> None:
    code, _, problem = await Box().run("sh", "-c", "true;" * 20_000)
    assert (code, problem) == (126, "sh: argument list too long\n")


async def test_space_is_bounded_and_given_back() -> None:
    box = Box()
    half = archive(**dict.fromkeys("ab", b"x" * (POD_SPACE // 4 - 4096)))
    assert (await box.run("tar", "xf", "-", "-C", "/tmp", stdin=half))[0] == 0
    assert await box.run("sh", "-c", "cat /tmp/a /tmp/b > /tmp/c; cat /tmp/a > /tmp/d") == (
        1,
        "",
        "sh: can't create /tmp/d: No space left on device\n",
    )
    assert await box.run("sh", "-c", "rm /tmp/c; cat /tmp/a > /tmp/d && wc -c < /tmp/d") == (
        0,
        f"{POD_SPACE // 4 - 4096}\n",
        "",
    )
