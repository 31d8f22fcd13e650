"""As much of mpi4py as its tests of executors ask for, for one process and without MPI."""
