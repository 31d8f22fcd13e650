/* Model (c): two sparks, and victims that guard both at a time, for one thief or for two.  With -DMORTAL_SUPERVISOR the second is
 * node 1's own, which may die.
 */

#ifndef NODES
#define NODES		3
#endif
#define TASKS		2
#ifndef REPLICAS
#define REPLICAS	3
#endif
#define WANT		2
#define GUARDS		2
#define LINK_MAX	8
#ifndef FISH_MAX
#define FISH_MAX	1
#endif
#ifndef ROOT_FISH_MAX
#define ROOT_FISH_MAX	1
#endif
#ifndef KILLS
#define KILLS		1
#endif
#ifndef FENCES
#define FENCES		0
#endif
#ifdef MORTAL_SUPERVISOR
#define MORTAL
#define SUPERVISOR(t)	(t)
#define SYMMETRIC	2
#define DONE		(FULL(0) && (FULL(1) || GONE(1)))
#else
#define SUPERVISOR(t)	0
#define SYMMETRIC	1
#define DONE		(FULL(0) && FULL(1))
#endif
#define EACH_TASK(f)	f(0) f(1)

#include "core.pml"
#include "node.pml"
#include "invariants.pml"

init {
	atomic {
		byte me = SUPERVISOR(1);
		register(1);
		POOL(me, 1) = 1;
		me = 0;
		register(0);
		POOL(0, 0) = 1;
		launch()
	}
}

#ifdef LTL
ltl fills { <>[] (DONE) }
#endif
