"""Choosing a node by what is known of it, and what is said when there is none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import hdphrs
from hdphrs import NodeInfo
from hdphrs.api.places import SHOWN_MAX, Roster, is_where
from hdphrs.errors import UsageError
from hdphrs.protocol.tasks import NODE_IDS_MAX, ROOT, NodeId

NEAR = NodeInfo(ROOT, "localhost", 2)
FAR = [NodeInfo(NodeId(number), "far", slots) for number, slots in ((1, 1), (4, 3))]


def anywhere(info: NodeInfo) -> bool:
    return True


def test_info_is_what_is_known_and_says_who_is_root() -> None:
    assert (NEAR.is_root, FAR[0].is_root) == (True, False)
    assert str(FAR[1]) == "4 (far)"
    with pytest.raises(AttributeError):
        NEAR.slots = 3  # type: ignore[misc]


@pytest.mark.parametrize("where", [0, NODE_IDS_MAX - 1, "far", anywhere], ids=["first", "last", "host", "predicate"])
def test_what_may_say_where(where: object) -> None:
    assert is_where(where)


@pytest.mark.parametrize("where", [-1, NODE_IDS_MAX, True, "", None, 1.0, [1]], ids=str)
def test_what_may_not_say_where(where: Any) -> None:
    assert not is_where(where)
    with hdphrs.sequential(), pytest.raises(UsageError, match=r"^spawn_at: the first argument is a node id as in"):
        hdphrs.spawn_at(where, abs, -1)


def test_nodes_that_match_get_tasks_in_turn_for_each_of_their_slots() -> None:
    roster = Roster([NEAR, *FAR])
    chosen = [roster.choose("far", "spawn_at") for _ in range(8)]
    assert Counter(chosen) == {1: 2, 4: 6}
    assert Counter(chosen[:4]) == {1: 1, 4: 3}
    chosen = [roster.choose(anywhere, "spawn_at") for _ in range(2)]
    assert chosen == [0, 0]  # its turn: it has got none so far
    assert Counter(roster.choose(anywhere, "spawn_at") for _ in range(60)) == {0: 20, 1: 10, 4: 30}


def test_among_equals_the_next_one_after_the_callers_own_is_first() -> None:
    equals = [NodeInfo(NodeId(number), "far", 1) for number in (5, 2, 7, 9)]
    assert [Roster(equals).choose("far", "spawn_at") for _ in range(2)] == [7, 7]
    roster = Roster(equals)
    assert [roster.choose("far", "spawn_at") for _ in range(5)] == [7, 9, 2, 5, 7]


def test_node_that_has_just_joined_does_not_get_all_that_comes() -> None:
    roster = Roster([NEAR])
    for _ in range(1000):
        roster.choose(anywhere, "spawn_at")
    roster.hear([[0, "localhost", 2], [1, "far", 1]])
    assert [roster.choose(anywhere, "spawn_at") for _ in range(7)] == [1, 0, 1, 0, 0, 1, 0]


def test_node_is_taken_at_its_word() -> None:
    assert Roster([NEAR]).choose(77, "spawn_at") == 77


def test_roster_follows_what_it_hears() -> None:
    roster = Roster([NEAR])
    roster.hear([[3, "far", 2], [0, "localhost", 1], [8, "", 0]])
    assert roster.ids == [3, 0, 8]
    assert roster.infos == (NodeInfo(NodeId(3), "far", 2), NodeInfo(ROOT, "localhost", 1))  # 8 is not announced yet


def test_unknown_host_is_told_which_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        Roster([NEAR, *FAR]).choose("fra", "spawn_at")
    assert str(caught.value) == "spawn_at: there is no host 'fra' in this run now; the hosts are: localhost, far"


def test_many_hosts_are_not_all_told() -> None:
    many = Roster(NodeInfo(NodeId(number), f"h{number}", 1) for number in range(SHOWN_MAX + 5))
    with pytest.raises(UsageError, match=f"h0, .*, h{SHOWN_MAX - 1} and 5 more$"):
        many.choose("fra", "spawn_at")


def test_predicate_that_holds_for_no_node_is_told_which_there_are() -> None:
    def is_huge(info: NodeInfo) -> bool:
        return info.slots > 99

    with pytest.raises(UsageError) as caught:
        Roster([NEAR, *FAR]).meant(is_huge, "pin")
    sentence = str(caught.value)
    assert sentence.startswith("pin: the predicate ")
    assert "is_huge holds for no node; " in sentence
    assert sentence.endswith("the nodes are: 0 (localhost), 1 (far), 4 (far)")


def test_predicate_that_raises_is_named_with_its_error() -> None:
    def is_odd(info: NodeInfo) -> bool:
        return bool(1 // (info.node - 1))

    with pytest.raises(UsageError) as caught:
        Roster([NEAR, *FAR]).choose(is_odd, "spawn_at")
    assert "is_odd raised ZeroDivisionError for node 1 (far): " in str(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_sequential_mode_has_one_node_on_localhost() -> None:
    with hdphrs.sequential():
        assert hdphrs.node_infos() == [NodeInfo(ROOT, "localhost", 1)]
        assert hdphrs.get(hdphrs.spawn_at("localhost", abs, -2)) == 2
        assert hdphrs.get(hdphrs.spawn_at(lambda info: info.is_root, abs, -2)) == 2
        with pytest.raises(UsageError, match=r"^spawn_at: there is no host 'far'"):
            hdphrs.spawn_at("far", abs, -2)
