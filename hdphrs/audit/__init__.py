"""The invariants of the protocol, held against cores from outside.

What lives here: what must be true of a whole cluster, whoever drives its cores.  The explorer looks at every state
(`scan`), the simulator and the replay of real runs follow every event (`follow`); both say the same four things:

1. the tracked location of a task covers the true one, and nothing is lost silently;
2. of the newest replica there is one copy that may migrate, at most;
3. a future is filled once;
4. a copy is in one place; a node that says it leaves nothing behind has none, and none is on its way there or from
   there.

The fifth, that everything ends, is for who drives the cluster.  A sixth is of one core alone: what it has foretold
comes first of what it does then (`foretold`).
"""
