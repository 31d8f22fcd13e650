"""The thief: whom it asks, and when it rests."""

from __future__ import annotations

from hdphrs.config import CoreConfig
from hdphrs.protocol.messages import Fish
from hdphrs.protocol.quiet import Quiet
from hdphrs.protocol.tasks import FishId, NodeId
from hdphrs.protocol.thief import Thief

ME = NodeId(0)
OTHERS = [NodeId(node) for node in (1, 2, 3, 4)]
CONFIG = CoreConfig(fish_max=2)


def thief(config: CoreConfig = CONFIG, quiet: Quiet | None = None) -> Thief:
    return Thief(ME, config, lambda n: 0, quiet or Quiet(config))


def test_fish_are_out_to_distinct_victims_and_bounded() -> None:
    sends = thief().hunt(OTHERS, 0.0)
    assert [send.to for send in sends] == [1, 2]
    assert [send.message for send in sends] == [Fish(FishId(i), ME, CONFIG.want_max, 0.0) for i in (1, 2)]


def test_node_without_others_does_not_fish() -> None:
    assert thief().hunt([], 0.0) == []


def test_last_successful_victim_is_asked_first() -> None:
    one = thief()
    one.hunt(OTHERS, 0.0)
    one.on_schedule(OTHERS[3], FishId(1))
    assert [send.to for send in one.hunt(OTHERS, 0.0)] == [4]


def test_victim_that_refuses_is_no_favourite_any_more() -> None:
    one = thief(CoreConfig(fish_max=1))
    one.on_schedule(OTHERS[3], FishId(77))
    one.hunt(OTHERS, 0.0)
    assert one.on_nowork(FishId(1), 4, 0.0)
    assert [send.to for send in one.hunt(OTHERS, 0.0)] == [1]


def refuse_all(one: Thief, now: float) -> None:
    one.expire(now)
    for send in one.hunt(OTHERS[:1], now):
        assert isinstance(send.message, Fish)
        one.on_nowork(send.message.fish, 1, now)


def test_rest_after_quick_refusals_grows_to_its_bound() -> None:
    one, now, rests = thief(), 0.0, []
    for _ in range(9):
        refuse_all(one, now)
        deadline = one.next_deadline()
        assert deadline is not None
        assert one.hunt(OTHERS, now) == []
        rests.append(round(deadline - now, 9))
        now = deadline
    assert rests[:3] == [0.001, 0.002, 0.004]
    assert rests[-1] == CONFIG.backoff_max_s


def test_rest_ends_before_the_deadline_of_a_fish_that_is_still_out() -> None:
    one = thief()
    first, *others = one.hunt(OTHERS, 0.0)
    assert others
    assert isinstance(first.message, Fish)
    assert one.on_nowork(first.message.fish, 1, 0.001)
    assert one.next_deadline() == 0.001 + CONFIG.backoff_min_s


def test_success_ends_the_rest_and_makes_the_next_one_short() -> None:
    one = thief()
    refuse_all(one, 0.0)
    refuse_all(one, 0.001)
    one.on_schedule(OTHERS[0], FishId(99))
    assert one.next_deadline() is None
    refuse_all(one, 1.0)
    assert one.next_deadline() == 1.0 + CONFIG.backoff_min_s


def test_slow_refusal_is_rest_enough() -> None:
    one = thief()
    one.hunt(OTHERS[:1], 0.0)
    one.on_nowork(FishId(1), 1, CONFIG.park_s)
    assert [send.to for send in one.hunt(OTHERS[:1], CONFIG.park_s)] == [1]


def test_overdue_fish_is_given_up_and_its_victim_no_favourite_any_more() -> None:
    one = thief(CoreConfig(fish_max=1))
    one.on_schedule(OTHERS[3], FishId(77))
    one.hunt(OTHERS, 0.0)
    deadline = one.next_deadline()
    assert deadline == CONFIG.fish_deadline_s
    assert one.expire(deadline) == 1
    assert [send.to for send in one.hunt(OTHERS, deadline)] == [1]


def test_answer_to_a_fish_that_was_given_up_is_told_apart() -> None:
    one = thief()
    one.hunt(OTHERS[:1], 0.0)
    one.expire(CONFIG.fish_deadline_s)
    one.hunt(OTHERS[:1], CONFIG.fish_deadline_s)
    assert not one.on_nowork(FishId(1), 1, CONFIG.fish_deadline_s)
    assert one.out == 1


def test_death_frees_the_fish_and_the_favourite() -> None:
    one = thief(CoreConfig(fish_max=1))
    one.on_schedule(OTHERS[3], FishId(77))
    one.hunt(OTHERS, 0.0)
    one.on_death(OTHERS[3])
    assert one.out == 0
    assert [send.to for send in one.hunt(OTHERS[:3], 0.0)] == [1]
