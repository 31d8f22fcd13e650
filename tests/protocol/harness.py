"""The old address of the cluster of bare cores; it lives in `hdphrs.explore` now."""

from __future__ import annotations

from hdphrs.audit.scan import Copy as Copy
from hdphrs.explore.cluster import Cluster as Cluster
from hdphrs.explore.cluster import first as first
from hdphrs.explore.host import Host as Host
from hdphrs.explore.host import Scheduler as Scheduler
from hdphrs.explore.work import CODE as CODE
from hdphrs.explore.work import CRASH as CRASH
from hdphrs.explore.work import spark as spark
from hdphrs.explore.work import task as task
from hdphrs.explore.work import value_of as value_of
