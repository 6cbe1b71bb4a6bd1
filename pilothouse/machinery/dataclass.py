"""`dataclass` as the standard library's, for classes whose definition must cost nothing at start.

The standard decorator compiles up to six methods a class, each on its own, called or not: 0.7 ms a class. This one has
the standard library collect the fields, compiles `__init__`, comparisons and `__hash__` when each is first looked up,
and shares the rest between all classes. `fields`, `replace`, `asdict`, matching, copying and pickling work as usual;
`InitVar` does not.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: TID251
else:
    from pilothouse.machinery.dataclass_methods import add_methods

    def dataclass(cls=None, /, *, slots=False, kw_only=False, weakref_slot=False, **methods):
        """`methods` are those of the standard options that say which methods the class gets."""
        layout = {"slots": slots, "kw_only": kw_only, "weakref_slot": weakref_slot}

        def define(cls):
            cls.__doc__ = cls.__doc__ or cls.__name__  # or else a signature is made for it, which takes __init__
            fielded = dataclasses.dataclass(init=False, repr=False, eq=False, **layout)(cls)  # noqa: TID251
            add_methods(fielded, **methods)
            return fielded

        return define if cls is None else define(cls)
