"""Drop-in `dataclass` whose class definition costs almost nothing at start.

The standard decorator compiles up to six methods per class eagerly: 0.7 ms per class. This decorator lets the standard
library collect the fields, compiles `__init__`, comparisons and `__hash__` on first lookup, and shares the other
methods between all classes. `fields`, `replace`, `asdict`, matching, copying and pickling work as usual; `InitVar` is
not supported.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: TID251
else:
    from pilothouse.machinery.dataclass_methods import add_methods

    def dataclass(cls=None, /, *, slots=False, kw_only=False, weakref_slot=False, **methods):
        """`methods`: the standard options that select the generated methods."""
        layout = {"slots": slots, "kw_only": kw_only, "weakref_slot": weakref_slot}

        def define(cls):
            cls.__doc__ = cls.__doc__ or cls.__name__  # avoids a generated signature, which would compile __init__
            fielded = dataclasses.dataclass(init=False, repr=False, eq=False, **layout)(cls)  # noqa: TID251
            add_methods(fielded, **methods)
            return fielded

        return define if cls is None else define(cls)
