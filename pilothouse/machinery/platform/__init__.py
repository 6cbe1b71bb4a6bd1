"""Operating system interface: the only package with code per platform.

Both implementations define the same names. The selection is by capability: a system with `fcntl` uses POSIX.
docs/reference/platforms.md describes the verification of each implementation.

    from pilothouse.machinery.platform import new_event_loop, on_signals, sync_file
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("fcntl") is not None:
    from pilothouse.machinery.platform.posix import (
        BINARY,
        CAN_FORK,
        CAN_RENAME_OPEN_FILES,
        CAN_SHARE_PORTS,
        HANGUP_SIGNALS,
        NEW_PROCESS_GROUP,
        STOP_SIGNALS,
        assignment_command,
        close_locked,
        effective_user,
        kill_process_group,
        lock_file,
        machine,
        new_event_loop,
        notify_service_manager,
        on_signals,
        replace_file,
        resident_memory,
        set_mode,
        stop_process,
        sync_directory,
        sync_file,
        unlock_file,
        unsent_bytes,
    )
else:
    from pilothouse.machinery.platform.windows import (
        BINARY,
        CAN_FORK,
        CAN_RENAME_OPEN_FILES,
        CAN_SHARE_PORTS,
        HANGUP_SIGNALS,
        NEW_PROCESS_GROUP,
        STOP_SIGNALS,
        assignment_command,
        close_locked,
        effective_user,
        kill_process_group,
        lock_file,
        machine,
        new_event_loop,
        notify_service_manager,
        on_signals,
        replace_file,
        resident_memory,
        set_mode,
        stop_process,
        sync_directory,
        sync_file,
        unlock_file,
        unsent_bytes,
    )

__all__ = [
    "BINARY",
    "CAN_FORK",
    "CAN_RENAME_OPEN_FILES",
    "CAN_SHARE_PORTS",
    "HANGUP_SIGNALS",
    "NEW_PROCESS_GROUP",
    "STOP_SIGNALS",
    "assignment_command",
    "close_locked",
    "effective_user",
    "kill_process_group",
    "lock_file",
    "machine",
    "new_event_loop",
    "notify_service_manager",
    "on_signals",
    "replace_file",
    "resident_memory",
    "set_mode",
    "stop_process",
    "sync_directory",
    "sync_file",
    "unlock_file",
    "unsent_bytes",
]
