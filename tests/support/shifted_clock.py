"""A pytest plugin (`-p shifted_clock`) whose process lives SHIFTED_CLOCK seconds in the future."""

from __future__ import annotations

import os
from datetime import timedelta

import time_machine

_travel = time_machine.travel(timedelta(seconds=int(os.environ["SHIFTED_CLOCK"])))
_travel.start()
