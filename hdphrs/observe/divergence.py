"""What is raised when a recorded run is not one of this core's."""


class Divergence(Exception):  # noqa: N818 - it is a finding, not an error
    """Where a run and its replay part; one line for a person."""
