"""The monkey does what is due, once, and says so first."""

from __future__ import annotations

from hdphrs.chaos.monkey import Monkey
from hdphrs.chaos.schedule import Kill


class Mortal:
    def __init__(self, label: str, said: list[str]) -> None:
        self.label = label
        self._said = said
        self.dead = False

    def kill(self) -> bool:
        self._said.append(f"{self.label} is killed")
        died, self.dead = not self.dead, True
        return died


def cluster(*kills: Kill) -> tuple[Monkey, list[Mortal], list[str]]:
    said: list[str] = []
    nodes = [Mortal(f"node {number}", said) for number in range(3)]
    return Monkey(kills, 42, said.append), nodes, said


def test_kills_come_at_their_times_and_only_once() -> None:
    monkey, nodes, _ = cluster(Kill(5.5, 1), Kill(3.0, 2))
    assert monkey.next_s == 3.0
    monkey.strike(2.9, nodes)
    assert [node.dead for node in nodes] == [False, False, False]
    monkey.strike(3.0, nodes)
    assert [node.dead for node in nodes] == [False, False, True]
    assert monkey.next_s == 5.5
    monkey.strike(9.0, nodes)
    assert [node.dead for node in nodes] == [False, True, True]
    assert monkey.next_s is None


def test_each_kill_is_said_before_it_is_done_with_the_seed_that_repeats_it() -> None:
    monkey, nodes, said = cluster(Kill(3.0, 2))
    monkey.ready()
    monkey.strike(3.2, nodes)
    assert said == [
        "chaos: 1 node to be killed; the same ones again with --seed 42",
        "chaos: killing node 2 at 3 s, seed 42",
        "node 2 is killed",
    ]


def test_a_victim_that_is_dead_already_is_said() -> None:
    monkey, nodes, said = cluster(Kill(1.0, 2))
    nodes[2].dead = True
    monkey.strike(1.0, nodes)
    assert said[-1] == "chaos: node 2 was dead already"
