"""Which nodes a run has."""

from __future__ import annotations

from hdphrs.cluster.hosts import Host
from hdphrs.cluster.plan import ALL_CORES, NodePlan, plan_nodes

LOCAL = Host("localhost")


def test_local_nodes_share_the_cores_of_the_host() -> None:
    assert plan_nodes([LOCAL, LOCAL], None, 5) == [NodePlan("localhost", 2), NodePlan("localhost", 2)]


def test_a_node_has_one_slot_at_least() -> None:
    assert [plan.slots for plan in plan_nodes([LOCAL] * 4, None, 2)] == [1, 1, 1, 1]


def test_cores_hold_for_every_host_that_does_not_say() -> None:
    plans = plan_nodes([Host("localhost", 7), Host("a"), Host("b", 2, "py")], 3, 8)
    assert plans == [NodePlan("localhost", 7), NodePlan("a", 3), NodePlan("b", 2, "py")]


def test_another_host_uses_all_its_cores_unless_told() -> None:
    assert plan_nodes([LOCAL, Host("a")], None, 8) == [NodePlan("localhost", 8), NodePlan("a", ALL_CORES)]


def test_the_root_is_the_first_local_line_wherever_it_stands() -> None:
    hosts = [Host("a", 1), Host("localhost", 2), Host("b", 3), Host("localhost", 4)]
    assert [(plan.host, plan.slots) for plan in plan_nodes(hosts, None, 8)] == [
        ("localhost", 2),
        ("a", 1),
        ("b", 3),
        ("localhost", 4),
    ]


def test_a_root_is_added_when_no_line_is_local() -> None:
    plans = plan_nodes([Host("127.0.0.1", 1)], None, 8)
    assert [(plan.host, plan.slots, plan.remote) for plan in plans] == [
        ("localhost", 8, False),
        ("127.0.0.1", 1, True),
    ]
