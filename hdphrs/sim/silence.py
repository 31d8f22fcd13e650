"""Who notices that somebody is silent, and when (the real ones: `transport/detector.py` and `peer.py`).

What lives here: suspicion.  Heartbeats are taken as continuous, so a peer is heard as long as its process runs, its way
to here is open and it has not closed the connection; a silence begins with one of these, and counts when it has lasted
for the time of detection, by the observer's own clock.  Between two of which neither is the root it counts only while a
cut holds up something that one of them has sent (decision 27).  A port that refuses is evidence at once.  An observer
that was stopped itself forgives what it did not hear meanwhile.
"""

from __future__ import annotations

from random import Random

from hdphrs.protocol.tasks import ROOT
from hdphrs.sim.draw import Draw
from hdphrs.sim.host import Host
from hdphrs.sim.network import Link, Network
from hdphrs.sim.world import World

TIMER_NS = 1_000_000
"""Timers are late by less."""


class Silence:
    """The detectors of all nodes."""

    def __init__(self, world: World, network: Network, drawn: Draw, chance: Random) -> None:
        self._world = world
        self._network = network
        self._detect_ns = drawn.detect_ms * 1_000_000
        self._notice_ns = drawn.notice_us * 1000
        self._chance = chance
        network.on_held_up = self._held_up

    def watch(self, observer: Host, peer: Host) -> None:
        """`peer` may be silent for `observer` from now on: look again when that counts."""
        delay_ns = self._detect_ns * 1_000_000 // observer.rate_ppm + self._chance.randrange(TIMER_NS)
        self._world.post(delay_ns, self._look, (observer, peer, self._world.now_ns))

    def watched_by_all(self, peer: Host) -> None:
        """All who know it."""
        for observer in self._acquaintances(peer):
            self.watch(observer, peer)

    def refuse(self, peer: Host) -> None:
        """The port of `peer` refuses from now on: whoever can reach it finds out."""
        for observer in self._acquaintances(peer):
            self.find_refused(observer, peer)

    def find_refused(self, observer: Host, peer: Host) -> None:
        """Its port refuses: `observer` finds out, if it can reach it.

        It dials when the connection has ended, that is when it has got all that was written to it; and the refusal
        needs its time.
        """
        network = self._network
        ended_ns = network.until_heard_ns(peer, observer)
        there_and_back_ns = network.link(observer, peer).latency_ns + network.link(peer, observer).latency_ns
        delay_ns = ended_ns + there_and_back_ns + self._chance.randrange(self._notice_ns)
        self._world.post(delay_ns, self._dial, (observer, peer))
        self.watch(observer, peer)

    def hears(self, observer: Host, peer: Host) -> bool:
        """Whether something of `peer` reaches `observer` now."""
        if not peer.up or peer.stalled or observer.node in peer.fenced:
            return False
        return not self._network.link(peer, observer).cuts

    def resumed(self, observer: Host, peer: Host) -> None:
        """One reason for silence is over."""
        if self.hears(observer, peer):
            observer.heard_ns[peer.node] = self._world.now_ns
            observer.suspected.pop(peer.node, None)

    def forgive(self, observer: Host) -> None:
        """`observer` was stopped: the silence was its own."""
        observer.forgave_ns = self._world.now_ns
        for node in list(observer.known):
            peer = self._network.hosts[node]
            if not self.hears(observer, peer):
                self.watch(observer, peer)

    def _held_up(self, link: Link) -> None:
        """A message waits for a cut to be mended."""
        if not _watch_always(link.sender, link.receiver):
            self.watch(link.receiver, link.sender)

    def _counts(self, observer: Host, peer: Host) -> bool:
        """Whether silence between these two matters to anybody."""
        return _watch_always(observer, peer) or self._network.holds_up(observer, peer)

    def _acquaintances(self, peer: Host) -> list[Host]:
        return [host for host in self._network.hosts.values() if host.up and peer.node in host.known]

    def _look(self, watch: tuple[Host, Host, int]) -> None:
        observer, peer, since_ns = watch
        if observer.stalled or observer.forgave_ns > since_ns or observer.heard_ns.get(peer.node, 0) > since_ns:
            return
        if not self.hears(observer, peer) and self._counts(observer, peer):
            observer.suspect(peer.node)

    def _dial(self, pair: tuple[Host, Host]) -> None:
        observer, peer = pair
        if not observer.stalled and not self._network.is_cut(observer, peer):
            observer.suspect(peer.node)


def _watch_always(one: Host, other: Host) -> bool:
    return ROOT in (one.node, other.node)
