/* The invariants of docs/verification.md, checked in every state, for every open record of a supervisor that is not fenced.
 *
 *   1  the record covers the truth: the newest replica is on a node that the record names, on its way to the second of them,
 *      answered (the result travels), or recovery is due: the record names a node whose DEADNODE is still to come
 *   2  at most one copy of the newest replica may migrate
 *   3  a future is filled once: an assertion in on_result
 *   4  each copy is in exactly one place
 */

#if GUARDS == 1
#define GUARDED(n, t)	IN_GUARD(n, t, 0)
#else
#define GUARDED(n, t)	(IN_GUARD(n, t, 0) | IN_GUARD(n, t, 1))
#endif
#define IN_GUARD(n, t, q)	(GUARD(n, q) > (t) * REPLICAS && GUARD(n, q) <= ((t) + 1) * REPLICAS -> BIT(GUARD(n, q) - 1 - (t) * REPLICAS) : 0)
#define AT(n, t)	(POOL(n, t) | HELD(n, t) | GUARDED(n, t))
#define IS_AT(n, t)	HAS(AT(n, t), newest[t])
#define COMES(n, t)	HAS(COMING(n, t), newest[t])
#define NAMES(n, t)	(from_[t] == (n) || to_[t] == (n))
#define NODE_COVERED(n, t)	((!IS_AT(n, t) || NAMES(n, t)) && (!COMES(n, t) || to_[t] == (n)))
#define ANSWER_FROM(s, t)	((s) != SUPERVISOR(t) && LINK(s, SUPERVISOR(t))??[RESULT, 0, eval(t), _, _])
#define DUE(n, t)	(GONE(n) && !KNOWN_DEAD(SUPERVISOR(t), n))
#define ALL_AT(n, t)	(POOL(n, t) | HELD(n, t) | GUARDED(n, t) | COMING(n, t))
#define SUM_AT(n, t)	(POOL(n, t) + HELD(n, t) + GUARDED(n, t) + COMING(n, t))

#if NODES == 3
#define ALL_NODES(f, op, t)	(f(0, t) op f(1, t) op f(2, t))
#else
#define ALL_NODES(f, op, t)	(f(0, t) op f(1, t) op f(2, t) op f(3, t))
#endif

#define TRACKED(t)	(OPEN(t) && !GONE(SUPERVISOR(t)))
#define MIGRATES(n, t)	(HAS(POOL(n, t) | GUARDED(n, t) | COMING(n, t), newest[t]))
#define FOUND(t)	(ALL_NODES(IS_AT, ||, t) || ALL_NODES(COMES, ||, t) || DUE(from_[t], t) || DUE(to_[t], t) || ALL_NODES(ANSWER_FROM, ||, t))

#define BROKEN_1(t)	:: d_step { TRACKED(t) && !(ALL_NODES(NODE_COVERED, &&, t) && FOUND(t)) -> assert(false || BROKEN(1)) }
#define BROKEN_2(t)	:: d_step { TRACKED(t) && ALL_NODES(MIGRATES, +, t) > 1 -> assert(false || BROKEN(2)) }
#define BROKEN_4(t)	:: d_step { ALL_NODES(SUM_AT, +, t) != ALL_NODES(ALL_AT, |, t) -> assert(false || BROKEN(4)) }

proctype Monitor() {
end:	do
	EACH_TASK(BROKEN_2)
	EACH_TASK(BROKEN_1)
	EACH_TASK(BROKEN_4)
	od
}
