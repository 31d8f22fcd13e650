"""What a user program calls: spawn, get, Future and their kin, over a port of the process that they run in."""
