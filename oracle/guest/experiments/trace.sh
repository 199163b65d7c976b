# A trace of allocations and frees, between two snapshots.
kontig load /trace.bin
proc_files t0
settle
kontig run t0 t1
proc_files t1
