/* The rules that close the known holes, one macro each, and beside each the breakage that `python -m spin.mutants` plants
 * with -DM_....  The handlers in core.pml use the rules by name.
 */

/* R15: nothing is authorised towards a thief that is known dead. */
#ifdef M_R15
#define MAY_GO_TO(thief)	true
#else
#define MAY_GO_TO(thief)	(!KNOWN_DEAD(me, thief))
#endif

/* R22: only the node on which the record has the spark may be authorised. */
#ifdef M_R22
#define MAY_LEAVE(t, victim)	(from_[t] == to_[t])
#else
#define MAY_LEAVE(t, victim)	(from_[t] == (victim) && to_[t] == (victim))
#endif

/* R21: an ACK is believed only of the newest replica and from a node that the record names. */
#ifdef M_R21
#define BELIEVED(t, r, node)	OPEN(t)
#else
#define BELIEVED(t, r, node)	(OPEN(t) && (r) == newest[t] && from_[t] != to_[t] && (from_[t] == (node) || to_[t] == (node)))
#endif

/* R6: a question about a finished task is legal. */
#ifdef M_R6
#define LEGAL(t)		assert(OPEN(t) || BROKEN(HANDLER))
#else
#define LEGAL(t)		skip
#endif

/* R3: a reply finds its guard by request id, or nothing.  The planted ones take whatever guard there is; and as the original
 * puts the thief's name into DENIED, the refusal then goes to the old thief, who does not wait, and not to the guard's. */
#if defined(M_R3A)
#define STALE_REPLY_IS_TAKEN	if :: m == OBSOLETE && GUARD_FREE(me, q) -> q = 1 - q :: else -> skip fi
#elif defined(M_R3B)
#define STALE_REPLY_IS_TAKEN \
	if \
	:: m == DENIED && GUARD_FREE(me, q) && !GUARD_FREE(me, 1 - q) -> \
		q = 1 - q; \
		open_guard(); \
		POOL(me, t) = POOL(me, t) | BIT(r); \
		q = 1 - q \
	:: else -> skip \
	fi
#elif defined(M_R3C)
#define STALE_REPLY_IS_TAKEN	if :: m == AUTH && GUARD_FREE(me, q) -> q = 1 - q :: else -> skip fi
#else
#define STALE_REPLY_IS_TAKEN	skip
#endif

/* R1: the death of a supervisor opens the guards of its sparks, and they leave the pool. */
#ifdef M_R1
#define ORPHANED(t, dead_)	false
#else
#define ORPHANED(t, dead_)	(SUPERVISOR(t) == (dead_))
#endif

/* R4: a fish in a dead victim does not count as out. */
#ifdef M_R4
#define NEVER_ANSWERS(dead_)	false
#else
#define NEVER_ANSWERS(dead_)	(fish_at[me] == (dead_))
#endif

/* R5: a fish has a deadline. */
#ifdef M_R5
#define OVERDUE			false
#else
#define OVERDUE			(fish[me] != 0)
#endif

/* R2: whether a node is alive is looked up in the step that places a thread there. */
#ifdef M_R2
#define MAY_PLACE_AT(node)	true
#else
#define MAY_PLACE_AT(node)	(!KNOWN_DEAD(me, node))
#endif

/* R16: the last spark of a pool may be stolen. */
#ifdef M_R16
#define ENOUGH(n)		(SPARKS(n) >= 2)
#else
#define ENOUGH(n)		true
#endif

/* A re-created spark has the next replica number. */
#ifdef M_REPLICA
#define NEXT(t)			newest[t]
#else
#define NEXT(t)			newest[t] + 1
#endif

/* The first result fills the future. */
#ifdef M_SECOND_WRITE
#define IS_FIRST(t)		true
#else
#define IS_FIRST(t)		OPEN(t)
#endif

/* The supervisor hears that a stolen spark has arrived. */
#ifdef M_NO_ACK
#define ARRIVAL_IS_TOLD		false
#else
#define ARRIVAL_IS_TOLD		true
#endif

/* R23: nobody acts on a private verdict.  Planted: the link between nodes 1 and 2 breaks, and each takes it for the other's
 * death; the root hears nothing. */
#ifdef M_R23
bool torn;
#define RULED(y)		(GONE(y) || (torn && me + (y) == 3 && me != 0 && (y) != 0))
#else
#define RULED(y)		GONE(y)
#endif
