"""Promela models of the protocol, and what runs them."""
