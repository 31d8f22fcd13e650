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
            Explained(10.0, [node(0, 9.0, 1.0, tasks_run=99, sparks_made=95, exported=7, grain_20=7)]),
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


def test_tasks_of_the_program_that_left_together_were_there_to_share_one_by_one() -> None:
    flat = Explained(10.0, [node(0, 5.0, 5.0, tasks_run=500, exported=4, grain_20=4)])
    assert flat.as_json()["shared"] == 500
    assert "were there to share" not in flat.advice()[0]
    nested = Explained(10.0, [node(0, 5.0, 1.0, tasks_run=500, sparks_made=499, exported=4, grain_20=4)])
    assert nested.as_json()["shared"] == 4
    assert nested.advice()[0].startswith("4 tasks were there to share among 2 cores")


def loaded(**counters: int) -> Explained:
    return Explained(10.0, [node(0, 9.5, 9.5, tasks_run=99, exported=99, grain_20=99, **counters)])


def test_a_machine_on_which_others_had_the_cores_is_not_called_busy_with_our_tasks() -> None:
    explained = loaded(cpu_us_0=5_000_000, cpu_us_1=5_000_000, queued_us_0=4_000_000, queued_us_1=4_500_000)
    assert (explained.as_json()["cpu_s"], explained.as_json()["queued_s"]) == (10.0, 8.5)
    assert explained.advice()[0].startswith("others had the cores for 8.5 s of the 19 s with tasks")
    assert "  processors: 10 s computed, 8.5 s waited for a core that others had" in explained.sentences()
    quiet = loaded(cpu_us_0=9_000_000, cpu_us_1=9_000_000, queued_us_0=100_000, queued_us_1=0)
    assert quiet.advice() == ["nothing: the cores were busy"]


def test_more_threads_than_cores_are_named_though_they_are_what_keeps_the_queue_full() -> None:
    explained = loaded(cpu_us_0=19_000_000, cpu_us_1=19_000_000, queued_us_0=1_000_000, queued_us_1=1_000_000)
    assert explained.as_json()["threads"] == pytest.approx(2.235)
    assert explained.advice()[0].startswith("tasks have computed with 2.2 threads for each core")
    started = Explained(0.2, [node(0, 0.05, 0.05, tasks_run=9, exported=9, cpu_us_0=200_000, cpu_us_1=200_000)])
    assert not started.has_many_threads  # it has only started


def test_tasks_that_are_not_done_are_named_with_their_scheduler() -> None:
    counters = {"now_us_0_main": 3_310_000, "now_us_1_a_b": 9_000_000}
    explained = Explained(10.0, [node(1, 9.5, 9.5, exported=2, **counters)])
    assert explained.as_json()["unfinished"] == [
        {"scheduler": "host:1 (node 1)", "task": "a_b", "for_s": 9.0},
        {"scheduler": "host:0 (node 1)", "task": "main", "for_s": 3.31},
    ]
    assert "  not done: host:1 (node 1) has been in a_b for 9 s" in explained.sentences()
    assert explained.advice()[0].startswith("the run ended before its tasks: host:1 (node 1) was in a_b for 9 s; ")
    short = Explained(10.0, [node(0, 9.5, 9.5, tasks_run=9, exported=9, grain_20=9, now_us_0_main=5000)])
    assert short.advice() == ["nothing: the cores were busy"]


def test_functions_are_merged_by_host_and_the_dearest_comes_first() -> None:
    one = {"function_calls_f": 2, "function_us_f": 5_000_000, "function_own_f": 1_000_000}
    other = {"function_calls_f": 1, "function_us_f": 500_000, "function_own_f": 500_000}
    more = {"function_calls_g_h": 7, "function_us_g_h": 9_000_000, "function_own_g_h": 8_000_000}
    explained = Explained(10.0, [node(0, 9.0, **one, **more), node(1, 9.0, **other)])
    assert explained.as_json()["functions"] == [
        {"name": "g_h", "host": "host", "calls": 7, "total_s": 9.0, "own_s": 8.0},
        {"name": "f", "host": "host", "calls": 3, "total_s": 5.5, "own_s": 1.5},
    ]
    lines = explained.sentences()
    place = lines.index("  the dearest functions: calls, seconds, seconds of their own")
    assert lines[place + 1].split() == ["7", "9.000", "8.000", "g_h", "(host)"]
