"""Exhaustive search over the shipped core: every order of messages, timers, deaths and choices in a small scope."""
