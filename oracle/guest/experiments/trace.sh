# A trace of allocations and frees, between two snapshots.
kontig load /trace.bin
proc_files t0
[ -z "$EVENTS" ] || trace_begin
settle

[ -z "$EVENTS" ] || echo 1 >&5
kontig run t0 t1

[ -z "$EVENTS" ] || trace_end
proc_files t1
