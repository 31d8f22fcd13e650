"""How the reference shows skeletons: as the functions that their callers take them for.

What lives here: an extension of griffe, which reads the package for mkdocstrings.  `par_map: Map = Map(...)` becomes a
function with the signature and the docstring of `Map.__call__`.
"""

from __future__ import annotations

from typing import Any

import griffe

PACKAGE = "skeletons"
BASE = "Skeleton"


class SkeletonsAsFunctions(griffe.Extension):
    """Replaces each instance of a pattern's class in the modules of skeletons."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called by griffe when a whole package has been read."""
        skeletons = pkg.members.get(PACKAGE)
        if not isinstance(skeletons, griffe.Module):
            return
        for module in skeletons.modules.values():
            patterns = {
                name: pattern.members["__call__"]
                for name, pattern in module.classes.items()
                if any(str(base) == BASE for base in pattern.bases)
            }
            for name, attribute in list(module.attributes.items()):
                call = patterns.get(str(attribute.annotation))
                if isinstance(call, griffe.Function):
                    module.set_member(name, _as_function(name, attribute, call))


def _as_function(name: str, attribute: griffe.Attribute, call: griffe.Function) -> griffe.Function:
    return griffe.Function(
        name,
        lineno=attribute.lineno,
        endlineno=attribute.endlineno,
        parameters=griffe.Parameters(*list(call.parameters)[1:]),
        returns=call.returns,
        docstring=call.docstring,
    )
