"""The page that lists the profiles, as Go's net/http/pprof shows it."""

from __future__ import annotations

import html

from pilothouse.apiserver.profiling.snapshots import SNAPSHOTS

_STACKS = "Use debug=2 as a query parameter to export in the same format as an unrecovered panic."
_FILE = (
    "You can specify the duration in the seconds GET parameter. "
    "After you get the {0} file, use the go tool {1} command to investigate the {0}."
)
_MEANINGS = {
    "allocs": "A sampling of all past memory allocations",
    "block": "Stack traces that led to blocking on synchronization primitives",
    "cmdline": "The command line invocation of the current program",
    "goroutine": f"Stack traces of all current goroutines. {_STACKS}",
    "goroutineleak": f"Stack traces of all leaked goroutines. {_STACKS}",
    "heap": "A sampling of memory allocations of live objects. "
    "You can specify the gc GET parameter to run GC before taking the heap sample.",
    "mutex": "Stack traces of holders of contended mutexes",
    "profile": f"CPU profile. {_FILE.format('profile', 'pprof')}",
    "symbol": "Maps given program counters to function names. "
    "Counters can be specified in a GET raw query or POST body, multiple counters are separated by '+'.",
    "threadcreate": "Stack traces that led to the creation of new OS threads",
    "trace": f"A trace of execution of the current program. {_FILE.format('trace', 'trace')}",
}
_HEAD = """<html>
<head>
<title>/debug/pprof/</title>
<style>
.profile-name{
	display:inline-block;
	width:6rem;
}
</style>
</head>
<body>
/debug/pprof/
<br>
<p>Set debug=1 as a query parameter to export in legacy text format</p>
<br>
Types of profiles available:
<table>
<thead><td>Count</td><td>Profile</td></thead>
"""
_BETWEEN = """</table>
<a href="goroutine?debug=2">full goroutine stack dump</a>
<br>
<p>
Profile Descriptions:
<ul>
"""


async def index_page() -> bytes:
    counts = {name: await _count(name) for name in _MEANINGS}
    rows = [f"<tr><td>{counts[name]}</td><td><a href='{name}?debug=1'>{name}</a></td></tr>\n" for name in _MEANINGS]
    meanings = [
        f"<li><div class=profile-name>{name}: </div> {html.escape(meaning)}</li>\n"
        for name, meaning in _MEANINGS.items()
    ]
    page = [_HEAD, *rows, _BETWEEN, *meanings, "</ul>\n</p>\n</body>\n</html>"]
    return "".join(page).replace("&#x27;", "&#39;").encode()


async def _count(name: str) -> int:
    """How often the stacks of a profile occur; of memory, how many places there are."""
    if name not in SNAPSHOTS:
        return 0
    profile = await SNAPSHOTS[name]()
    if name in ("allocs", "heap"):
        return len(profile.samples)
    return sum(values[0] for values in profile.samples.values())
