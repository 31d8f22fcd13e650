/* Model (b): a nested supervisor that may die.  The root's task, wherever it runs, makes a child, which others may steal; its
 * node supervises the child until that node dies.  Then the root makes the task anew, and that makes the child anew, under a
 * new ref.  A scheduler may die too, and with it the future of the child.
 */

#define NODES		3
#define TASKS		4	/* the root's, and its children in the order in which they are made */
#define REPLICAS	3
#define WANT		1
#define GUARDS		1
#ifndef FISH_MAX
#define FISH_MAX	1
#endif
#ifndef ROOT_FISH_MAX
#define ROOT_FISH_MAX	1
#endif
#ifndef KILLS
#define KILLS		2
#endif
#ifndef FENCES
#define FENCES		0
#endif
#ifndef CRASHES
#define CRASHES		0
#endif
#define SYMMETRIC	1
#define MORTAL
#define NESTED
#define EACH_TASK(f)	f(0) f(1) f(2) f(3)
#define DONE		FULL(0)

byte made_at[TASKS];		/* the node whose run of the root's task has made this one */
byte made_by[TASKS];		/* and that run's replica number */
byte made;			/* children so far */
byte crashes;
#define SUPERVISOR(t)	made_at[t]

#define IS_CHILD(t, n, r)	(made >= (t) && made_at[t] == (n) && made_by[t] == (r) && FULL(t))
#define READY(t, r)	((t) != 0 || IS_CHILD(1, me, r) || IS_CHILD(2, me, r) || IS_CHILD(3, me, r))
#define RUNS(n)		(HELD(n, 0) != 0 || HELD(n, 1) != 0 || HELD(n, 2) != 0 || HELD(n, 3) != 0)

#include "core.pml"

/* The root's task starts: its first deed is to make the child. */
inline on_start() {
	if
	:: t == 0 ->
		assert(made < TASKS - 1 || BROKEN(BOUND));
		made++;
		made_at[made] = me;
		made_by[made] = r;
		register(made);
		POOL(me, made) = 1
	:: else -> skip
	fi
}

/* The copies that it ran go back to the pool; nobody will ever read the futures that it made. */
inline on_scheduler_died() {
	t = 0;
	do
	:: t == TASKS -> break
	:: else ->
		if
		:: HELD(me, t) != 0 && KNOWN_DEAD(me, SUPERVISOR(t)) -> WITNESS(ORPHAN)
		:: HELD(me, t) != 0 && !KNOWN_DEAD(me, SUPERVISOR(t)) -> POOL(me, t) = POOL(me, t) | HELD(me, t)
		:: else -> skip
		fi;
		HELD(me, t) = 0;
		t++
	od;
	t = 1;
	do
	:: t == TASKS -> break
	:: else ->
		if
		:: SUPERVISOR(t) == me -> forget()
		:: else -> skip
		fi;
		t++
	od
}

inline forget() {
	filled = filled & ~BIT(t);
	if
	:: OPEN(t) ->
		if
		:: from_[t] == me || to_[t] == me -> purge(t)
		:: else -> skip
		fi;
		if
		:: from_[t] != me -> send(me, from_[t], PURGE, 0, t, 0, 0)
		:: else -> skip
		fi;
		if
		:: to_[t] != me && to_[t] != from_[t] -> send(me, to_[t], PURGE, 0, t, 0, 0)
		:: else -> skip
		fi;
		close(t)
	:: else -> skip
	fi
}

#include "node.pml"
#include "invariants.pml"

init {
	atomic {
		byte me = 0;
		register(0);
		POOL(0, 0) = 1;
		made_at[1] = NOBODY;
		made_at[2] = NOBODY;
		made_at[3] = NOBODY;
		launch()
	}
}

#define ivar_full		FULL(0)
#ifdef LTL
ltl fills { <>[] ivar_full }
#endif
