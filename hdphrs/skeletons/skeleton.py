"""A pattern bound to one strategy: what every skeleton is.

What lives here: the base of their classes, and how arguments come to their names.  A skeleton's class is the pattern,
its instances are the variants (`par_`, `push_`, ...), as in Listing 3 `parMapSliced = pMapSliced $ mapM spawn`.

A user takes a skeleton for a function, and so do `help` and `inspect.signature`: it has a name, a docstring and a
signature of its own, and arguments that do not fit are reported under its name (decision 52).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

from hdphrs.skeletons.strategy import Strategy
from hdphrs.wire.constant import Constant


class _Signature:
    """`__signature__` of a skeleton: that of its class's `__call__`, which is read when somebody asks."""

    def __get__(self, skeleton: Skeleton | None, owner: type[Skeleton]) -> inspect.Signature:
        if skeleton is None:
            raise AttributeError("__signature__")  # a class has the signature of its constructor
        signature = inspect.signature(vars(owner)["__call__"])
        return signature.replace(parameters=list(signature.parameters.values())[1:])


@dataclass(eq=False, repr=False)
class Skeleton(Constant):
    """A pattern under one strategy; travels as its name, like a function."""

    name: str
    """That of the variable in the module of its class; mistakes are reported under it."""
    schedule: Strategy

    grain: ClassVar[str | None] = None
    """The parameter that precedes the function in the paper's order, and that may be given by name beside it."""

    __signature__: ClassVar[Any] = _Signature()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__call__" in vars(cls):  # not so of a class that dataclass makes anew
            call = vars(cls)["__call__"]
            setattr(cls, "__call__", call if hasattr(call, "__wrapped__") else _under_its_name(call))  # noqa: B010

    def __post_init__(self) -> None:
        self.__name__: str = self.name
        self.__qualname__: str = self.name
        self.__doc__ = vars(type(self))["__call__"].__doc__

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """The same, as an attribute of a class: it is not bound to instances.  For `help` that makes it a routine."""
        return self

    def __repr__(self) -> str:
        return f"<skeleton {self.name}>"

    def __reduce__(self) -> str:
        return self.name

    def arrange(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in the order of the paper: where the function comes first, the grain comes by its name, or is
        None."""
        if self.grain is None or (args and not callable(args[0])):
            return args, kwargs
        if args:
            rest = dict(kwargs)
            return (rest.pop(self.grain, None), *args), rest
        return args, {self.grain: None, **kwargs}


def _under_its_name(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, with its arguments arranged; those that do not fit are reported under the skeleton's name."""

    @wraps(call)
    def named(self: Skeleton, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self.arrange(args, kwargs)
        try:
            return call(self, *args, **kwargs)
        except TypeError as error:
            here = error.__traceback__
            if here is None or here.tb_next is not None:  # it has been called, so they fit
                raise
            try:
                self.__signature__.bind(*args, **kwargs)
            except TypeError as misfit:
                raise TypeError(f"{self.name}: {misfit}; its arguments are {_shown(self.__signature__)}") from None
            raise

    return named


def _shown(signature: inspect.Signature) -> str:
    """The names and defaults of parameters, without their types."""
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
