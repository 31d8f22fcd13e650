"""Fault injection, for testing a program and this package; never unless asked (section 5.5 of the paper)."""
