"""A plugin for the pytest that runs our own programs; there is nothing to plug in."""
