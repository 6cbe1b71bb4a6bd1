"""The signals that a container can be stopped with."""

from __future__ import annotations

from pilothouse.machinery.field import Errors, Path, forbidden, not_supported

_NAMES = (
    "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT RTMAX RTMIN SEGV STKFLT STOP SYS "
    "TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ"
)
_LINUX = tuple(
    sorted(
        [
            *(f"SIG{name}" for name in _NAMES.split()),
            *(f"SIGRTMIN+{number}" for number in range(1, 16)),
            *(f"SIGRTMAX-{number}" for number in range(1, 15)),
        ]
    )
)
_SIGNALS = {"linux": _LINUX, "windows": ("SIGKILL", "SIGTERM")}


def validate_stop_signal(signal: str, path: Path, os_name: str | None) -> Errors:
    if os_name is None:
        yield forbidden(path, "may not be set for containers with empty `spec.os.name`")
        return
    supported = _SIGNALS.get(os_name)
    if supported is not None and signal not in supported:
        yield not_supported(path, signal, supported)
