"""The models speak of the core that ships: the same messages, and handlers that exist on both sides."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import get_args

import pytest

from hdphrs.protocol import messages
from spin.mutants import MUTANTS
from spin.pan import HERE
from spin.runs import RUNS

MODELS = {path.name: path.read_text() for path in sorted(HERE.glob("*.pml"))}
EVERYTHING = "\n".join(MODELS.values())
README = Path(HERE, "README.md").read_text()
TIES = re.findall(r"^\| `(\w+)` \| `([\w.]+)` \|$", README, re.MULTILINE)
MACHINERY = re.findall(r"`(\w+)`", README[README.index("Inlines without a counterpart") :])

LEFT_OUT = {
    "Keep": "in the models what is lost is computed again; the explorer has it, in the scopes pieces and kept",
    "Discard": "in the models no value takes down its reader; the explorer has it, in the scope reading",
    "Recall": "in the models what is lost is computed again; the explorer has it, in the scopes pieces and kept",
    "Recalled": "in the models what is lost is computed again; the explorer has it, in the scopes pieces and kept",
    "Orphans": "in the models what is lost is computed again; the explorer has it, in the scopes pieces and kept",
    "Await": "in the models nobody waits for an orphan; the explorer has it, in the scopes pieces and kept",
    "Gone": "in the models nobody waits for an orphan; the explorer has it, in the scopes pieces and kept",
    "Leaving": "nobody leaves a model but by dying; the explorer has it, in the scopes leaving and parting",
    "Noted": "nobody leaves a model but by dying; the explorer has it, in the scopes leaving and parting",
    "Bye": "to the others it is a death, and those are at any time; the explorer has it, in leaving and parting",
    "Cancel": "in the models nobody gives up a future; the explorer has it, in the scopes cancelling and stopping",
    "Code": "only says what a spark's function is; always ahead of it on the same link",
    "Forget": "only says that a spark's function is needed no more; the simulator has it, and so have the mutants",
    "Welcome": "the members of a model are there from the start",
    "Joined": "the members of a model are there from the start",
    "Suspect": "the root may declare anybody dead at any time, accused or not",
    "Term": "a model ends when nothing can happen any more",
    "TermAck": "a model ends when nothing can happen any more",
}


def test_models_have_exactly_the_protocol_s_messages_but_for_those_left_out() -> None:
    protocol = {message.__name__ for message in get_args(messages.Message)}
    names = re.search(r"mtype = \{([^}]*)\}", EVERYTHING)
    assert names is not None
    assert LEFT_OUT.keys() <= protocol
    assert sorted(names[1].replace(" ", "").split(",")) == sorted(name.upper() for name in protocol - LEFT_OUT.keys())


@pytest.mark.parametrize(("label", "function"), TIES)
def test_handler_in_the_table_exists_in_model_and_core(label: str, function: str) -> None:
    assert re.search(rf"^(inline|#define) {label}\b", EVERYTHING, re.MULTILINE)
    module, owner, name = function.split(".")
    assert callable(getattr(getattr(importlib.import_module(f"hdphrs.protocol.{module}"), owner), name))


def test_every_inline_of_the_models_is_in_the_table_or_named_as_machinery() -> None:
    inlines = re.findall(r"^inline (\w+)\(", EVERYTHING, re.MULTILINE)
    labels = [label for label, _ in TIES if label in inlines]
    assert sorted(inlines) == sorted(labels + MACHINERY)


def test_every_planted_bug_has_its_place_in_a_model() -> None:
    assert sorted(f"M_{mutant.name}" for mutant in MUTANTS) == sorted(set(re.findall(r"\bM_[A-Z]\w*", EVERYTHING)))


def test_every_witness_is_looked_for_and_every_goal_has_a_witness() -> None:
    placed = set(re.findall(r"\bWITNESS\(([A-Z_]+)\)", EVERYTHING))
    goals = {switch.removeprefix("-DGOAL=") for run in RUNS for switch in run.search.switches if "GOAL" in switch}
    assert placed == goals


def test_every_model_is_searched() -> None:
    assert {f"{run.search.model}.pml" for run in RUNS} == {name for name in MODELS if "init {" in MODELS[name]}
