"""Quiet: an idle cluster says little, and less and less; the first sparks are found at once all the same."""

from __future__ import annotations

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import spark
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Send
from hdphrs.protocol.quiet import Quiet
from hdphrs.protocol.tasks import ROOT, FishId, NodeId
from hdphrs.protocol.thief import Thief

N1, N2, N3 = NodeId(1), NodeId(2), NodeId(3)
CONFIG = CoreConfig()
SOON_S, LONG_S = CONFIG.park_s, CONFIG.park_max_s
NODES = 16


def idle(nodes: int = NODES) -> Cluster:
    """All wait for work from the beginning."""
    cluster = Cluster(nodes, choose=None, checked=False)
    cluster.up(ROOT)
    for node in range(nodes):
        cluster.hungry(node)
    cluster.settle()
    return cluster


def live(cluster: Cluster, until_s: float) -> int:
    """Nothing happens but what the nodes do by themselves; how many fish that is."""
    before = fish_sent(cluster)
    while True:
        due_s = min(s for host in cluster.hosts.values() if (s := host.core.next_deadline()) is not None)
        if due_s > until_s:
            return fish_sent(cluster) - before
        cluster.tick(max(0.0, due_s - cluster.now))
        cluster.settle()


def fish_sent(cluster: Cluster) -> int:
    return sum(host.core.counters["fish_sent"] for host in cluster.hosts.values())


def test_quiet_lasts_until_somebody_has_had_sparks() -> None:
    quiet = Quiet(CONFIG)
    assert quiet.lasts_s(1.0) == 1.0
    quiet.end(1.0)
    assert (quiet.lasts_s(1.0), quiet.lasts_s(1.5)) == (0.0, 0.5)
    quiet.end(2.0, ago_s=0.25)
    assert quiet.lasts_s(2.0) == 0.25


def test_old_news_make_it_no_quieter() -> None:
    quiet = Quiet(CONFIG)
    quiet.end(1.0)
    quiet.end(1.5, ago_s=LONG_S)
    assert quiet.lasts_s(1.5) == 0.5


def test_quiet_stays_deep_when_others_say_so_whatever_the_clock_shows() -> None:
    quiet = Quiet(CONFIG)
    for step in range(100):
        now = 1e5 + step / 7
        quiet.end(now, ago_s=LONG_S)
        assert quiet.is_deep(now)


def test_patience_is_as_long_as_the_quiet_within_bounds() -> None:
    quiet = Quiet(CONFIG)
    assert [quiet.patience_s(now) for now in (0.0, SOON_S / 2, 1.0, 1e9)] == [SOON_S, SOON_S, 1.0, LONG_S]
    assert [quiet.is_deep(now) for now in (0.0, 1.0, LONG_S)] == [False, False, True]


def test_idle_cluster_says_less_and_less() -> None:
    cluster = idle()
    first = live(cluster, 1.0)
    live(cluster, 10.0)
    later = live(cluster, 20.0)
    assert first > 3 * NODES
    assert later <= 10.0 / LONG_S * CONFIG.fish_max * NODES


def test_after_a_quiet_time_everybody_waits_at_the_root() -> None:
    cluster = idle()
    live(cluster, 4 * LONG_S)
    parked = [one.message.thief for one in cluster.core(ROOT).victim._parked]
    assert sorted(parked) == list(range(1, NODES))


def test_after_a_quiet_time_somebody_waits_at_each_node() -> None:
    cluster = idle()
    live(cluster, 4 * LONG_S)
    assert all(host.core.victim.parked for host in cluster.hosts.values())


@pytest.mark.parametrize(("fish_max", "asked"), [(1, [4]), (2, [4, ROOT])])
def test_one_fish_goes_anywhere_however_few_there_are(fish_max: int, asked: list[NodeId]) -> None:
    config = CoreConfig(fish_max=fish_max)
    thief = Thief(N3, config, lambda n: n - 1, Quiet(config))
    assert [send.to for send in thief.hunt([ROOT, N1, N2, NodeId(4)], LONG_S)] == asked


def test_last_node_is_followed_by_the_first() -> None:
    thief = Thief(NodeId(4), CONFIG, lambda n: n - 1, Quiet(CONFIG))
    assert [send.to for send in thief.hunt([ROOT, N1, N2, N3], LONG_S)] == [N3, ROOT, N2]


def test_first_sparks_after_a_quiet_time_reach_everybody_at_once() -> None:
    cluster = idle()
    live(cluster, 60.0)
    cluster.spawn(1 << NODES.bit_length() + 4)
    cluster.settle()
    assert all(host.core.schedulers.held() for host in cluster.hosts.values())


def test_those_whom_the_first_sparks_do_not_feed_are_refused_soon_and_told_why() -> None:
    cluster = idle(4)
    live(cluster, 60.0)
    due_s = cluster.now + SOON_S
    cluster.spawn(2)
    cluster.settle()
    assert cluster.core(ROOT).victim.parked == 2
    cluster.now = due_s
    refusals = [effect.message for effect in cluster.feed(ROOT, ev.Tick()) if isinstance(effect, Send)]
    assert [round(one.quiet_s, 9) for one in refusals if isinstance(one, msg.NoWork)] == [SOON_S, SOON_S]


def quiet_node() -> Cluster:
    """Node 1 has heard nothing for long, and keeps a fish of node 2."""
    cluster = Cluster(4)
    cluster.now = 60.0
    cluster.feed(1, ev.Received(N2, msg.Fish(FishId(1), N2, 1, LONG_S)))
    assert cluster.core(1).next_deadline() == 60.0 + LONG_S
    return cluster


def test_a_thief_that_has_seen_sparks_makes_those_who_wait_elsewhere_look_around() -> None:
    cluster = quiet_node()
    cluster.feed(1, ev.Received(N3, msg.Fish(FishId(1), N3, 1, 0.0)))
    assert cluster.core(1).next_deadline() == 60.0 + SOON_S


def test_a_refusal_of_one_that_has_seen_sparks_is_news_too() -> None:
    cluster = quiet_node()
    cluster.feed(1, ev.Received(N3, msg.NoWork(FishId(1), 0.0)))
    assert cluster.core(1).next_deadline() == 60.0 + SOON_S


def test_those_who_came_before_wait_no_longer_than_those_who_come_now() -> None:
    cluster = quiet_node()
    cluster.feed(1, ev.Received(N3, msg.Fish(FishId(1), N3, 1, 1.0)))
    assert [one.until_s for one in cluster.core(1).victim._parked] == [61.0, 61.0]


def test_last_fish_go_to_the_next_node_and_the_root_when_it_is_quiet_and_anywhere_when_it_is_not() -> None:
    others = [ROOT, N2, N3, NodeId(4)]
    quiet = Quiet(CONFIG)
    thief = Thief(N1, CONFIG, lambda n: n - 1, quiet)
    assert [send.to for send in thief.hunt(others, LONG_S)] == [4, 2, ROOT]
    quiet.end(LONG_S)
    thief = Thief(N1, CONFIG, lambda n: n - 1, quiet)
    assert [send.to for send in thief.hunt(others, LONG_S)] == [4, 3, 2]


def test_next_fish_goes_to_who_made_the_sparks_not_to_who_passed_them_on() -> None:
    cluster = Cluster(4, choose=lambda n: n - 1, config=CoreConfig(fish_max=1))
    cluster.feed(1, ev.Received(N3, msg.Schedule(FishId(99), (spark(2, 0),))))
    assert cluster.core(1).thief._favourite == N2


def test_own_sparks_that_come_back_make_their_bringer_the_favourite() -> None:
    cluster = Cluster(4, config=CoreConfig(fish_max=1), checked=False)
    cluster.feed(1, ev.Received(N3, msg.Schedule(FishId(99), (spark(1, 0),))))
    assert cluster.core(1).thief._favourite == N3
