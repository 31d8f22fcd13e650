/* Model (a): the paper's.  An immortal root makes one task, by spawn or (-DPUSHED) by spawn_at on node 1; the others are mortal and
 * steal it from the root and from each other.
 */

#ifndef NODES
#define NODES		4
#endif
#define TASKS		1
#ifndef REPLICAS
#define REPLICAS	4
#endif
#define SUPERVISOR(t)	0
#define WANT		1
#define GUARDS		1
#ifndef FISH_MAX
#define FISH_MAX	2
#endif
#ifndef ROOT_FISH_MAX
#define ROOT_FISH_MAX	0
#endif
#ifndef KILLS
#define KILLS		(NODES - 1)
#endif
#ifndef FENCES
#define FENCES		0
#endif
#ifdef PUSHED
#define SYMMETRIC	2
bool placed;
#else
#define SYMMETRIC	1
#endif
#define EACH_TASK(f)	f(0)
#define DONE		FULL(0)

#include "core.pml"

inline on_placed() {
	register(0);
	if
	:: MAY_PLACE_AT(1) ->
		thread = true;
		from_[0] = 1;
		to_[0] = 1;
		ship(me, 1, PUSH, 0, 0, 0)
	:: else -> POOL(me, 0) = 1				/* it is dead: a spark of ours */
	fi
}

#include "node.pml"
#include "invariants.pml"

init {
	atomic {
		byte me = 0;
#ifndef PUSHED
		register(0);
		POOL(0, 0) = 1;
#endif
		launch()
	}
}

#define ivar_full		FULL(0)
#define ivar_empty		(!FULL(0))
#define all_workers_alive	(dead == 0)
#define any_result_sent		sent
#ifdef LTL
ltl alive { [] all_workers_alive }
ltl until { [] (ivar_empty U any_result_sent) }
ltl fills { <>[] ivar_full }
#endif
