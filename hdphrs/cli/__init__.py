"""The command `hdphrs`: reads options, checks input, and speaks to a person; what it starts is in hdphrs.cluster."""
