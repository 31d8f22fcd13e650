"""The deterministic simulator: one seed draws a cluster, its work and its faults, in virtual time."""
