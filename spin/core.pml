/* The roles of a node, as hdphrs/protocol has them: thief, victim, supervisor.  Every handler is one inline, which bears the
 * name of the method that it models (README.md has the table) and is expanded once.
 *
 * A model is a file that defines its scope and includes this one:
 *
 *   NODES, TASKS, REPLICAS    how many; node 0 is the root, which never dies
 *   SUPERVISOR(t)             the node that made task t
 *   WANT, GUARDS              sparks that one fish may get; sparks that one victim may have under guard
 *   FISH_MAX, ROOT_FISH_MAX   fish that each worker, and the root, may send in all
 *   KILLS, FENCES             nodes that may die, and live nodes that may be declared dead
 *   SYMMETRIC                 from which worker on they are interchangeable
 *
 * Time passes in steps: one event at one node, with all that the handler does, or one fault.  Links are FIFO channels, one for
 * each ordered pair of nodes; nothing orders the messages of different pairs.  What is sent to the dead is lost; of what the
 * dead had sent, each node gets an arbitrary prefix, namely what it takes before it handles the DEADNODE.  The root's ruling
 * reaches each node at any time, in any order with the other rulings and with all messages.
 */

mtype = { FISH, NOWORK, REQ, AUTH, DENIED, OBSOLETE, SCHEDULE, ACK, PURGE, PUSH, RESULT, DEADNODE };

#ifndef LINK_MAX
#define LINK_MAX	5
#endif

/* Fields: fish or request id; task; replica; node. */
chan link[NODES * (NODES - 1)] = [LINK_MAX] of { mtype, byte, byte, byte, byte };
#define LINK(s, d)		link[(s) * (NODES - 1) + (d) - ((d) > (s))]

#define NOBODY			255
#define NOTHING			255
#define BIT(n)			(1 << (n))
#define HAS(set, n)		(((set) >> (n)) & 1)
#define COPY(t, r)		((t) * REPLICAS + (r))

/* ---- the world ---- */
byte dead;				/* nodes that are gone */
byte declared;				/* live nodes that the root has declared dead: fenced */
byte kills, fences;			/* faults so far */

/* ---- what a node knows ---- */
byte buried[NODES];			/* nodes known dead */
byte fish[NODES], fish_at[NODES];	/* the fish that is out: its id, 0 for none, and its victim */
byte fish_left[NODES];			/* fish that it may still send; also the next fish's id */
byte pool[NODES * TASKS];		/* replicas that wait here */
byte held[NODES * TASKS];		/* replicas that schedulers of this node have got */
byte guard[NODES * GUARDS];		/* the guarded copy + 1, 0 for none; the index in the node is the request id */
byte guard_thief[NODES * GUARDS];
byte guard_fish[NODES * GUARDS];
#if WANT > 1
bool answered[NODES * GUARDS];		/* that fish has got something already */
#endif
#ifdef PARKED
byte parked[NODES * NODES];		/* the fish of each thief that is kept waiting, 0 for none */
#endif

/* ---- what a supervisor knows: records ---- */
short open, filled;			/* tasks with a record, futures that are filled */
byte newest[TASKS];			/* replica number */
byte from_[TASKS], to_[TASKS];		/* OnNode when equal, else InTransition */
#ifdef PUSHED
bool thread;				/* replica 0 of task 0 was placed by spawn_at: it does not migrate */
#endif

/* ---- for the invariants only ---- */
byte coming[NODES * TASKS];		/* replicas on their way to the node; a function of the links */
#ifdef LTL
bool sent;				/* a result has been transmitted (the paper's any_result_sent) */
#endif

/* ---- scratch, 0 between steps ---- */
mtype m, reply;
byte q, t, r, x, who, copy, more, i;
bool gave, asked;

#define KNOWN_DEAD(n, y)	HAS(buried[n], y)
#define GONE(n)			HAS(dead | declared, n)
#define POOL(n, t)		pool[(n) * TASKS + (t)]
#define HELD(n, t)		held[(n) * TASKS + (t)]
#define COMING(n, t)		coming[(n) * TASKS + (t)]
#define GUARD(n, q)		guard[(n) * GUARDS + (q)]
#define GUARD_THIEF(n, q)	guard_thief[(n) * GUARDS + (q)]
#define GUARD_FISH(n, q)	guard_fish[(n) * GUARDS + (q)]
#define ANSWERED(n, q)		answered[(n) * GUARDS + (q)]
#define PARKED_FISH(n, thief)	parked[(n) * NODES + (thief)]
#define OPEN(t)			HAS(open, t)
#define FULL(t)			HAS(filled, t)
#define IS_WANTED(t, r)		(SUPERVISOR(t) != me || (OPEN(t) && newest[t] == (r)))
#ifdef PUSHED
#define IS_THREAD(t, r)		(thread && (t) == 0 && (r) == 0)
#else
#define IS_THREAD(t, r)		false
#endif

#ifndef DUPLICATES
#define ID_FREE(n, q)		true
#else
/* A request id is used again only when nothing in the world carries it any more; so slots serve as ids without end. */
byte late_at = NOBODY, late_id;		/* where a reply will arrive once more, and its id */
byte late_left;				/* replies with this id that are still to come */
byte duplicates;
#define ID_FREE(n, q)		(late_at != (n) || late_id != (q))
#endif
#define IS_REPLY(m)		(m == AUTH || m == DENIED || m == OBSOLETE)
#define GUARD_FREE(n, q)	(GUARD(n, q) == 0)
#define MAY_GUARD(n, q)		(GUARD_FREE(n, q) && ID_FREE(n, q))
#if GUARDS == 1
#define CAN_GUARD(n)		MAY_GUARD(n, 0)
#else
#define CAN_GUARD(n)		(MAY_GUARD(n, 0) || MAY_GUARD(n, 1))
#endif

#if REPLICAS == 2
#define EACH_REPLICA(option, t)	option(t, 0) option(t, 1)
#elif REPLICAS == 3
#define EACH_REPLICA(option, t)	option(t, 0) option(t, 1) option(t, 2)
#else
#define EACH_REPLICA(option, t)	option(t, 0) option(t, 1) option(t, 2) option(t, 3)
#endif
#if TASKS == 1
#define EACH_COPY(option)	EACH_REPLICA(option, 0)
#define SPARKS(n)		COUNT(POOL(n, 0))
#elif TASKS == 2
#define EACH_COPY(option)	EACH_REPLICA(option, 0) EACH_REPLICA(option, 1)
#define SPARKS(n)		(COUNT(POOL(n, 0)) + COUNT(POOL(n, 1)))
#elif TASKS == 4
#define EACH_COPY(option)	EACH_REPLICA(option, 0) EACH_REPLICA(option, 1) EACH_REPLICA(option, 2) EACH_REPLICA(option, 3)
#define SPARKS(n)		(COUNT(POOL(n, 0)) + COUNT(POOL(n, 1)) + COUNT(POOL(n, 2)) + COUNT(POOL(n, 3)))
#endif
#define COUNT(set)		(HAS(set, 0) + HAS(set, 1) + HAS(set, 2) + HAS(set, 3))
#define COPIES(n)		SPARKS(n)

/* A check that fails tells by its number which one it was: 1 to 4 are the invariants of docs/verification.md. */
#define BROKEN(check)		check == 0
#define HANDLER			5	/* a handler would have raised */
#define LAST_WORDS		6	/* a message to a node that the sender knows dead */
#define LINK_FULL		7	/* the bound on a link is too small for this model */
#define STRANDED		8	/* all is quiet, and a thief waits for an answer or a guard for its reply */
#define BOUND			9	/* more children than the model has room for */

/* A counter-property: with -DGOAL=<name> the model claims that this never happens, and must be refuted. */
#define STEAL			1
#define SECOND_STEAL		2
#define DEATH_IN_TRANSIT	3
#define OBSOLETE_MET		4
#define DENIED_MET		5
#define KEPT			6
#define DUPLICATE		7
#define PUSH_RECOVERED		8
#define ORPHAN			9
#define PURGED			10
#define ALL_DIE			11
#define FENCED_ANSWERS		12
#define BOTH_GUARDED		13
#define STALE_REPLY		14
#ifdef GOAL
#define WITNESS(what)		assert(GOAL != what)
#else
#define WITNESS(what)		skip
#endif

#include "rules.pml"

/* ---- links ---- */

inline send(s, d, message, q_, t_, r_, n_) {
	assert(!KNOWN_DEAD(s, d) || BROKEN(LAST_WORDS));
	if
	:: HAS(dead, d) || KNOWN_DEAD(d, s) -> skip		/* lost, or fenced by the receiver */
	:: else ->
		assert(nfull(LINK(s, d)) || BROKEN(LINK_FULL));
		LINK(s, d)!message, q_, t_, r_, n_
	fi
}

/* A message that carries a copy; where it is lost, so is the copy. */
inline ship(s, d, message, q_, t_, r_) {
	if
	:: HAS(dead, d) || KNOWN_DEAD(d, s) -> skip
	:: else -> COMING(d, t_) = COMING(d, t_) | BIT(r_)
	fi;
	send(s, d, message, q_, t_, r_, 0)
}

/* Nobody will ever read this link again. */
inline cut(s, d) {
	do
	:: nempty(LINK(s, d)) ->
		LINK(s, d)?m, q, t, r, x;
		if
		:: m == SCHEDULE || m == PUSH -> COMING(d, t) = COMING(d, t) & ~BIT(r)
		:: else -> skip
		fi
	:: empty(LINK(s, d)) -> break
	od
}

/* ---- the supervisor ---- */

inline register(t_) {
	open = open | BIT(t_);
	from_[t_] = me;
	to_[t_] = me
}

inline close(t_) {
	open = open & ~BIT(t_);
	newest[t_] = 0;
	from_[t_] = 0;
	to_[t_] = 0
}

inline on_req() {
	LEGAL(t);
	if
	:: !OPEN(t) || r != newest[t] -> reply = OBSOLETE
	:: else ->
		if
		:: MAY_LEAVE(t, who) && MAY_GO_TO(x) ->
			from_[t] = who;
			to_[t] = x;
			reply = AUTH
		:: else -> reply = DENIED
		fi
	fi;
	send(me, who, reply, q, 0, 0, 0)
}

inline on_ack() {
	LEGAL(t);
	if
	:: BELIEVED(t, r, x) ->
		from_[t] = x;
		to_[t] = x
	:: else -> skip
	fi
}

inline on_result() {
	if
	:: IS_FIRST(t) ->
		assert(!FULL(t) || BROKEN(3));
		filled = filled | BIT(t);
		close(t)
	:: else -> WITNESS(DUPLICATE)
	fi
}

inline supervisor_on_death() {
	t = 0;
	do
	:: t == TASKS -> break
	:: else ->
		if
		:: OPEN(t) && SUPERVISOR(t) == me && (from_[t] == x || to_[t] == x) ->
#ifdef PUSHED
			if
			:: IS_THREAD(t, newest[t]) -> WITNESS(PUSH_RECOVERED)
			:: else -> skip
			fi;
#endif
			newest[t] = NEXT(t);
			from_[t] = me;
			to_[t] = me;
			POOL(me, t) = POOL(me, t) | BIT(newest[t])
		:: else -> skip
		fi;
		t++
	od
}

/* ---- the victim ---- */

/* The fish `q` of thief `who` is here: give what needs no leave, ask for the rest; which of the copies, and how many of
 * them, is policy and left open. */
#define OFFER(t_, r_)	:: more > 0 && HAS(POOL(me, t_), r_) && !IS_THREAD(t_, r_) && (SUPERVISOR(t_) == me || CAN_GUARD(me)) && ENOUGH(me) -> \
				copy = COPY(t_, r_)

inline on_fish() {
	do
	:: copy = NOTHING;
		if
		EACH_COPY(OFFER)
#if WANT > 1
		:: more < WANT -> skip
#endif
		:: else -> skip
		fi;
		if
		:: copy == NOTHING -> break
		:: else -> skip
		fi;
		t = copy / REPLICAS;
		r = copy % REPLICAS;
		more--;
		POOL(me, t) = POOL(me, t) & ~BIT(r);
		if
		:: !IS_WANTED(t, r) -> skip				/* dropped */
		:: IS_WANTED(t, r) && SUPERVISOR(t) == me -> authorise()
		:: IS_WANTED(t, r) && SUPERVISOR(t) != me -> reserve()
		fi
	od;
#if WANT > 1
	share_answer();
#endif
	if
	:: gave || asked -> skip
#ifdef PARKED
	:: !gave && !asked -> PARKED_FISH(me, who) = q			/* it may wait here for a while */
#endif
	:: !gave && !asked -> send(me, who, NOWORK, q, 0, 0, 0)
	fi
}

inline authorise() {
	assert((from_[t] == me && to_[t] == me) || BROKEN(HANDLER));
	to_[t] = who;
	gave = true;
	ship(me, who, SCHEDULE, q, t, r)
}

inline reserve() {
	i = 0;
#if GUARDS > 1
	if
	:: !MAY_GUARD(me, 0) -> i = 1
	:: else -> skip
	fi;
#endif
	GUARD(me, i) = copy + 1;
	GUARD_THIEF(me, i) = who;
	GUARD_FISH(me, i) = q;
	asked = true;
	send(me, SUPERVISOR(t), REQ, i, t, r, who)
#if GUARDS > 1
	;
	if
	:: GUARD(me, 1 - i) != 0 -> WITNESS(BOTH_GUARDED)
	:: else -> skip
	fi
#endif
}

#if WANT > 1
/* All guards of one fish share what is known of it. */
inline share_answer() {
	i = 0;
	do
	:: i == GUARDS -> break
	:: else ->
		if
		:: gave && GUARD(me, i) != 0 && GUARD_THIEF(me, i) == who && GUARD_FISH(me, i) == q -> ANSWERED(me, i) = true
		:: else -> skip
		fi;
		i++
	od
}
#endif

/* Take the guard of request q: copy (t, r), thief x, its fish `more`; `asked` if another guard of that fish is left, `gave`
 * if the fish is answered. */
inline open_guard() {
	assert(GUARD(me, q) != 0 || BROKEN(HANDLER));
	t = (GUARD(me, q) - 1) / REPLICAS;
	r = (GUARD(me, q) - 1) % REPLICAS;
	x = GUARD_THIEF(me, q);
	more = GUARD_FISH(me, q);
	GUARD(me, q) = 0;
	GUARD_THIEF(me, q) = 0;
	GUARD_FISH(me, q) = 0;
#if WANT > 1
	gave = ANSWERED(me, q);
	ANSWERED(me, q) = false;
	asked = (GUARD(me, 1 - q) != 0 && GUARD_THIEF(me, 1 - q) == x && GUARD_FISH(me, 1 - q) == more)
#endif
}

inline refuse() {
	if
	:: asked || gave || KNOWN_DEAD(me, x) -> skip
	:: else -> send(me, x, NOWORK, more, 0, 0, 0)
	fi
}

inline on_auth() {
	open_guard();
	if
	:: KNOWN_DEAD(me, x) ->				/* its thief is gone: it stays, and the supervisor is told so */
		WITNESS(KEPT);
		POOL(me, t) = POOL(me, t) | BIT(r);
		send(me, SUPERVISOR(t), ACK, 0, t, r, me)
	:: else ->
#if WANT > 1
		if
		:: asked -> ANSWERED(me, 1 - q) = true
		:: else -> skip
		fi;
#endif
		ship(me, x, SCHEDULE, more, t, r)
	fi
}

inline on_denied() {
	WITNESS(DENIED_MET);
	open_guard();
	POOL(me, t) = POOL(me, t) | BIT(r);
	refuse()
}

inline on_obsolete() {
	WITNESS(OBSOLETE_MET);
	open_guard();
	refuse()
}

#ifdef MORTAL
/* Guarded orphans are dropped, and their thieves told. */
inline victim_on_death() {
	who = x;
	q = 0;
	do
	:: q == GUARDS -> break
	:: else ->
		if
		:: GUARD(me, q) != 0 && ORPHANED((GUARD(me, q) - 1) / REPLICAS, who) ->
			open_guard();
			refuse()
		:: else -> skip
		fi;
		q++
	od;
	x = who
}
#endif

/* ---- the thief ---- */

/* A fish to `who`: thieves look elsewhere only when they have nothing themselves. */
inline hunt() {
	fish[me] = fish_left[me];
	fish_at[me] = who;
	fish_left[me]--;
	send(me, who, FISH, fish[me], 0, 0, 0)
}

inline on_answer() {
	if
	:: fish[me] == q ->
		fish[me] = 0;
		fish_at[me] = 0
	:: else -> skip						/* the answer to a fish that was given up */
	fi
}

inline on_nowork() {
	on_answer()
}

inline on_schedule() {
	COMING(me, t) = COMING(me, t) & ~BIT(r);
	on_answer();
	if
#ifdef MORTAL
	:: KNOWN_DEAD(me, SUPERVISOR(t)) -> WITNESS(ORPHAN)	/* its supervisor is gone: dropped */
#endif
	:: else ->
		WITNESS(STEAL);
		POOL(me, t) = POOL(me, t) | BIT(r);
		x = me;
		if
		:: SUPERVISOR(t) != me && who != SUPERVISOR(t) -> WITNESS(SECOND_STEAL)
		:: else -> skip
		fi;
		if
		:: SUPERVISOR(t) == me -> on_ack()
		:: SUPERVISOR(t) != me && ARRIVAL_IS_TOLD -> send(me, SUPERVISOR(t), ACK, 0, t, r, me)
		:: else -> skip
		fi
	fi
}

inline thief_on_death() {
	if
	:: fish[me] != 0 && NEVER_ANSWERS(x) ->
		fish[me] = 0;
		fish_at[me] = 0
	:: else -> skip
	fi
}

/* ---- the node ---- */

#ifdef DUPLICATES
/* The transport delivers a question or a reply twice, the second time late. */
inline duplicate() {
	if
	:: IS_REPLY(m) && late_at == me && late_id == q ->
		late_left--;
		if
		:: late_left == 0 ->
			late_at = NOBODY;
			late_id = 0
		:: else -> skip
		fi
	:: IS_REPLY(m) && duplicates < DUPLICATES ->
		duplicates++;
		late_at = me;
		late_id = q;
		late_left = 1;
		LINK(who, me)!m, q, t, r, x
	:: m == REQ && duplicates < DUPLICATES ->
		duplicates++;
		late_at = who;
		late_id = q;
		late_left = 2;
		LINK(who, me)!m, q, t, r, x
	:: !(IS_REPLY(m) && late_at == me && late_id == q) -> skip
	fi
}
#endif

#ifdef PUSHED
inline on_push() {
	COMING(me, t) = COMING(me, t) & ~BIT(r);
	POOL(me, t) = POOL(me, t) | BIT(r)
}
#endif

#ifdef NESTED
/* Copies that wait here for nobody; those that run may finish. */
inline purge(t_) {
	if
	:: POOL(me, t_) != 0 -> WITNESS(PURGED)
	:: else -> skip
	fi;
	POOL(me, t_) = 0
}
#endif

#ifdef MORTAL
/* Sparks that a dead supervisor cannot say anything about any more; their results, if they run, are for nobody. */
inline purge_orphans() {
	t = 0;
	do
	:: t == TASKS -> break
	:: else ->
		if
		:: ORPHANED(t, x) ->
			if
			:: POOL(me, t) != 0 || HELD(me, t) != 0 -> WITNESS(ORPHAN)
			:: else -> skip
			fi;
			POOL(me, t) = 0
		:: else -> skip
		fi;
		t++
	od
}
#endif

inline on_dead_node() {
	buried[me] = buried[me] | BIT(x);
	who = x;
	cut(who, me);
	x = who;
	thief_on_death();
#ifdef PARKED
	PARKED_FISH(me, x) = 0;
#endif
#ifdef MORTAL
	purge_orphans();
	victim_on_death();
#endif
	supervisor_on_death()
#ifdef M_PURGE
	;
	i = 0;			/* planted: with the orphans go the results that wait on this node's links */
	do
	:: i == NODES -> break
	:: i < NODES && i != me && LINK(me, i)??[RESULT, _, _, _, _] -> LINK(me, i)??RESULT, q, t, r, x
	:: else -> i++
	od
#endif
}

/* A task on this node ends: its result is the future's, or goes to where the future is. */
inline answer() {
#ifdef LTL
	sent = true;
#endif
	if
	:: SUPERVISOR(t) == me -> on_result()
#ifdef MORTAL
	:: SUPERVISOR(t) != me && KNOWN_DEAD(me, SUPERVISOR(t)) -> WITNESS(ORPHAN)
#endif
	:: else ->
#if FENCES > 0
		if
		:: HAS(declared, me) && !KNOWN_DEAD(SUPERVISOR(t), me) -> WITNESS(FENCED_ANSWERS)
		:: else -> skip
		fi;
#endif
		send(me, SUPERVISOR(t), RESULT, 0, t, r, 0)
	fi
}

inline forget_step() {
	m = 0;
	reply = 0;
	q = 0;
	t = 0;
	r = 0;
	x = 0;
	who = 0;
	copy = 0;
	more = 0;
	i = 0;
	gave = false;
	asked = false
}

inline on_received() {
#ifdef DUPLICATES
	STALE_REPLY_IS_TAKEN;
#endif
	if
#ifdef DUPLICATES
	:: IS_REPLY(m) && GUARD_FREE(me, q) -> WITNESS(STALE_REPLY)	/* nobody waits for it: ignored */
	:: m == AUTH && !GUARD_FREE(me, q) -> on_auth()
	:: m == DENIED && !GUARD_FREE(me, q) -> on_denied()
	:: m == OBSOLETE && !GUARD_FREE(me, q) -> on_obsolete()
#else
	:: m == AUTH -> on_auth()
	:: m == DENIED -> on_denied()
	:: m == OBSOLETE -> on_obsolete()
#endif
	:: m == NOWORK -> on_nowork()
	:: m == REQ -> on_req()
	:: m == SCHEDULE -> on_schedule()
	:: m == ACK -> on_ack()
	:: m == RESULT -> on_result()
	:: m == DEADNODE -> on_dead_node()
#ifdef PUSHED
	:: m == PUSH -> on_push()
#endif
#ifdef NESTED
	:: m == PURGE -> purge(t)
#endif
	fi
}
