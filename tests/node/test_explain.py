"""The summary of a run."""

from __future__ import annotations

import json

import pytest

from hdphrs.node.explain import Explained, NodeFigures


def node(number: int, *busy_s: float, **counters: int) -> NodeFigures:
    busy = {f"busy_us_{core}": int(seconds * 1e6) for core, seconds in enumerate(busy_s)}
    return NodeFigures(number, "host", len(busy_s), sum(busy_s), {**busy, **counters})


GOOD = Explained(
    10.0,
    [
        node(0, 10.0, 9.0, tasks_run=1000, sparks_made=1000, exported=90, grain_10=30, grain_20=10, node_cpu_us=9000),
        node(1, 9.5, 9.5, tasks_run=900, sparks_made=900, exported=10, stolen=20, grain_20=50, node_cpu_us=1000),
    ],
)


def test_figures_are_those_of_all_nodes_together() -> None:
    told = GOOD.as_json()
    assert (told["cores"], told["busy_s"], told["idle_s"], told["utilisation"]) == (4, 38.0, 2.0, 0.95)
    assert told["busy_s_by_core"] == {"0:0": 10.0, "0:1": 9.0, "1:0": 9.5, "1:1": 9.5}
    assert (told["exported"], told["moved"], told["way_s"], told["task_s"]) == (100, 20, 0.0001, 0.02)
    assert told["grains"] == {"0.001024": 30, "1.04858": 60}
    assert told["advice"] == ["nothing: the cores were busy"]
    json.dumps(told)


def test_sentences_have_a_line_for_each_core_and_each_size_of_tasks() -> None:
    lines = GOOD.sentences()
    assert lines[0] == "explained: 10.00 s on 4 cores, 95 % of their time busy, 2.00 s idle"
    assert lines[1] == "  host:0 (node 0)     10.00 s  100%  ####################"
    assert lines[4] == "  host:1 (node 1)      9.50 s   95%  ###################"
    assert "1,900 run, 20 ms each; 100 of them exported, 20 moved between nodes" in lines[5]
    assert "the way through a node: 100 µs" in lines[5]
    assert lines[7:9] == ["     1.02 ms         30  ##########", "      1.05 s         60  ####################"]
    assert lines[9:] == ["  what to change: nothing: the cores were busy"]


def test_critical_path_is_told_if_somebody_has_looked() -> None:
    looked = Explained(10.0, GOOD.nodes, 40.0, 0.5)
    assert "  critical path: 500 ms of 40 s of work: 80.0 cores can be kept busy" in looked.sentences()
    assert (looked.as_json()["span_s"], looked.as_json()["parallelism"]) == (0.5, 80.0)
    assert not [line for line in GOOD.sentences() if "critical path" in line]


def test_node_that_died_has_the_work_that_is_known_of_it() -> None:
    dead = NodeFigures(2, "host", 2, 3.0, {})
    assert dead.busy_s == [1.5, 1.5]


@pytest.mark.parametrize(
    ("explained", "words"),
    [
        (Explained(10.0, [node(0, 0.0, 0.0)]), "made no task"),
        (Explained(10.0, [node(0, 10.0, 0.0, tasks_run=1, exported=1)]), "nothing was spawned: 1 of 2 cores"),
        (
            Explained(10.0, [node(0, 1.0, 1.0, tasks_run=99, exported=99, grain_3=99, node_cpu_us=9900)]),
            "took less than 6 µs, and the way of each through the node 100 µs",
        ),
        (
            Explained(10.0, [node(0, 9.0, 1.0, tasks_run=99, sparks_made=9, exported=7, grain_20=7)]),
            "7 tasks were there to share among 2 cores",
        ),
        (
            Explained(10.0, [node(0, 9.0, 1.0, tasks_run=99, exported=99, grain_20=99)], 10.0, 8.0),
            "takes 8 s, which is enough for 1.2 of 2 cores",
        ),
        (
            Explained(10.0, [node(0, 9.0, 1.0, tasks_run=99, exported=99, grain_20=99)], 10.0, 1.0),
            "cores were idle while others worked",
        ),
    ],
)
def test_what_to_change_follows_from_the_figures(explained: Explained, words: str) -> None:
    (sentence,) = explained.advice()
    assert words in sentence
