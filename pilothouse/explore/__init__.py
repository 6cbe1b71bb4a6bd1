"""Explore: find the bugs of an operator by perturbed runs of one scenario.

`__init__.pyi` lists the public names.
"""

from __future__ import annotations

from pilothouse.machinery.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
