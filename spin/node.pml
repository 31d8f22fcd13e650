/* The processes: nodes, the environment with its faults, and the program at the root that waits for its future.
 *
 * Models may define ON_START, READY(t, r) and SCHEDULER_MAY_DIE; see nested.pml.
 */

#define SENDER(s)	:: (s) != me && nempty(LINK(s, me)) -> LINK(s, me)?m, q, t, r, x; who = s
#define RULING(y)	:: (y) != me && RULED(y) && !HAS(dead, me) && !KNOWN_DEAD(me, y) -> m = DEADNODE; x = y
#define SERVED(s)	:: PARKED_FISH(me, s) != 0 && SPARKS(me) > 0 -> m = FISH; q = PARKED_FISH(me, s); who = s; PARKED_FISH(me, s) = 0
#define EXPIRED(s)	:: PARKED_FISH(me, s) != 0 -> q = PARKED_FISH(me, s); who = s; PARKED_FISH(me, s) = 0
#define START(t_, r_)	:: HAS(POOL(me, t_), r_) -> t = t_; r = r_
#define FINISH(t_, r_)	:: HAS(HELD(me, t_), r_) && READY(t_, r_) -> t = t_; r = r_
/* Interchangeable workers are named by the order in which they first send a fish. */
#define MY_TURN		(me <= SYMMETRIC || fish_left[me] < FISH_MAX || fish_left[me - 1] < FISH_MAX)
#ifdef M_R4
#define LIVES(y)	true
#else
#define LIVES(y)	(!KNOWN_DEAD(me, y))
#endif
#define VICTIM(y)	:: (y) != me && fish_left[me] > 0 && fish[me] == 0 && COPIES(me) == 0 && LIVES(y) && MY_TURN -> who = y

#if NODES == 3
#define EACH_NODE(option)	option(0) option(1) option(2)
#else
#define EACH_NODE(option)	option(0) option(1) option(2) option(3)
#endif
#ifndef READY
#define READY(t_, r_)	true
#endif

/* pan reports what is unreached in an atomic sequence, but not in a d_step; the states are the same. */
#ifdef FAST
#define STEP	d_step
#else
#define STEP	atomic
#endif

proctype Node(byte me) {
end:	do
	:: atomic {			/* a message, or the root's ruling */
		if
		EACH_NODE(SENDER)
		EACH_NODE(RULING)
#ifdef PARKED
		EACH_NODE(SERVED)
#endif
		fi;
#ifdef DUPLICATES
		duplicate();
#endif
		if
		:: m == FISH ->
			more = WANT;
			on_fish()
		:: m != FISH -> STEP { on_received() }
		fi;
		STEP { forget_step() }
	   }
	:: atomic {			/* a scheduler gets a task */
		if
		EACH_COPY(START)
		fi;
		STEP {
			POOL(me, t) = POOL(me, t) & ~BIT(r);
			if
			:: !IS_WANTED(t, r) -> skip
			:: else ->
				HELD(me, t) = HELD(me, t) | BIT(r)
#ifdef NESTED
				;
				on_start()
#endif
			fi;
			forget_step()
		}
	   }
	:: atomic {			/* and ends it */
		if
		EACH_COPY(FINISH)
		fi;
		STEP {
			HELD(me, t) = HELD(me, t) & ~BIT(r);
			answer();
			forget_step()
		}
	   }
	:: atomic {			/* nothing to run here */
		if
		EACH_NODE(VICTIM)
		fi;
		STEP {
			hunt();
			forget_step()
		}
	   }
#ifdef PARKED
	:: atomic {			/* a thief has waited long enough */
		if
		EACH_NODE(EXPIRED)
		fi;
		STEP {
			send(me, who, NOWORK, q, 0, 0, 0);
			forget_step()
		}
	   }
#endif
#ifdef LOSSES
	:: STEP {			/* a fish has waited long enough */
		OVERDUE -> fish[me] = 0;
		fish_at[me] = 0
	   }
#endif
#ifdef PUSHED
	:: STEP {			/* the program places a thread on node 1 */
		me == 0 && !placed -> placed = true;
		on_placed();
		forget_step()
	   }
#endif
#ifdef NESTED
	:: STEP {			/* a scheduler is gone, with all that it ran and made */
		crashes < CRASHES && RUNS(me) && !HAS(dead, me) -> crashes++;
		on_scheduler_died();
		forget_step()
	   }
#endif
	od
}

/* ---- faults ---- */

#ifdef LOSSES
byte losses;
#define LOST_FISH(s, d)	:: (s) != (d) && losses < LOSSES && (LINK(s, d)?[FISH, _, _, _, _] || LINK(s, d)?[NOWORK, _, _, _, _]) -> \
				losses++; LINK(s, d)?m, q, t, r, x
#define LOST_FROM(s)	LOST_FISH(s, 0) LOST_FISH(s, 1) LOST_FISH(s, 2)
#endif

#define TO_DIE(y)	:: (y) != 0 && kills < KILLS && !HAS(dead, y) -> who = y
#define TO_FENCE(y)	:: (y) != 0 && fences < FENCES && !GONE(y) -> who = y

inline die() {
	t = 0;
	do
	:: t == TASKS -> break
	:: else ->
		if
		:: OPEN(t) && from_[t] != to_[t] && (from_[t] == who || to_[t] == who) -> WITNESS(DEATH_IN_TRANSIT)
		:: else -> skip
		fi;
		POOL(who, t) = 0;
		HELD(who, t) = 0;
#ifdef MORTAL
		if
		:: SUPERVISOR(t) == who ->
			filled = filled & ~BIT(t);
			close(t)
		:: else -> skip
		fi;
#endif
		t++
	od;
	kills++;
	dead = dead | BIT(who);
	i = 0;
	do
	:: i == NODES -> break
	:: i == who -> i++
	:: else ->
		cut(i, who);
		if
		:: KNOWN_DEAD(i, who) -> cut(who, i)
		:: else -> skip
		fi;
#ifdef PARKED
		PARKED_FISH(who, i) = 0;
#endif
		i++
	od;
	q = 0;
	do
	:: q == GUARDS -> break
	:: else ->
		GUARD(who, q) = 0;
		GUARD_THIEF(who, q) = 0;
		GUARD_FISH(who, q) = 0;
#if WANT > 1
		ANSWERED(who, q) = false;
#endif
		q++
	od;
	fish[who] = 0;
	fish_at[who] = 0;
	fish_left[who] = 0;
	buried[who] = 0;
	if
	:: dead == BIT(NODES) - 2 -> WITNESS(ALL_DIE)
	:: else -> skip
	fi
}

proctype Environment() {
end:	do
	:: atomic {
		if
		EACH_NODE(TO_DIE)
		fi;
		STEP {
			die();
			forget_step()
		}
	   }
	:: STEP { kills < KILLS -> kills = KILLS }	/* no more of them die */
#if FENCES > 0
	:: atomic {					/* the root declares a live node dead */
		if
		EACH_NODE(TO_FENCE)
		fi;
		STEP {
			fences++;
			declared = declared | BIT(who);
			forget_step()
		}
	   }
#endif
#ifdef LOSSES
	:: atomic {					/* a fish, or its refusal, is lost */
		if
		EACH_NODE(LOST_FROM)
		fi;
		STEP { forget_step() }
	   }
#endif
#ifdef M_R23
	:: !torn -> torn = true
#endif
	od
}

/* ---- the end ---- */


/* The thief's answer and the guard's reply are owed to all who are members still. */
#define WAITS(n)	(!GONE(n) && (fish[n] != 0 || GUARDING(n)))
#if GUARDS == 1
#define GUARDING(n)	(GUARD(n, 0) != 0)
#else
#define GUARDING(n)	(GUARD(n, 0) != 0 || GUARD(n, 1) != 0)
#endif
#if NODES == 3
#define ANYBODY_WAITS	(WAITS(0) || WAITS(1) || WAITS(2))
#else
#define ANYBODY_WAITS	(WAITS(0) || WAITS(1) || WAITS(2) || WAITS(3))
#endif

/* When nothing can happen any more, the program has its results; else it stands here, an invalid end state. */
proctype Program() {
	atomic {
		timeout && DONE;
		assert(!ANYBODY_WAITS || BROKEN(STRANDED))
	}
}

inline launch() {
	fish_left[0] = ROOT_FISH_MAX;
	i = 1;
	do
	:: i == NODES -> break
	:: else ->
		fish_left[i] = FISH_MAX;
		i++
	od;
	i = 0;
	do
	:: i == NODES -> break
	:: else ->
		run Node(i);
		i++
	od;
	i = 0;
	run Environment();
	run Program()
#ifndef UNMONITORED
	;
	run Monitor()
#endif
}
