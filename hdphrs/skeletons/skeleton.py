"""What all skeletons have in common: a pattern, a strategy and a name (paper section 3.2, Listing 3).

What lives here: `Skeleton`.  Each pattern is a class, whose call is written once and is parametric in the strategy;
each public skeleton is an instance: `par_map = Map("par_map", lazy)`, as in Listing 3 `parMapSliced = pMapSliced $ mapM
spawn`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hdphrs.skeletons.strategy import Strategy
from hdphrs.wire.constant import Constant


@dataclass(eq=False, repr=False)
class Skeleton(Constant):
    """A pattern under one strategy; travels as its name, like a function."""

    name: str
    """That of the variable in the module of its class; mistakes are reported under it."""
    schedule: Strategy

    def __post_init__(self) -> None:
        self.__name__: str = self.name
        self.__qualname__: str = self.name

    def __repr__(self) -> str:
        return f"<skeleton {self.name}>"

    def __reduce__(self) -> str:
        return self.name
