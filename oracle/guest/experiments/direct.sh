# The node filled, the first three quarters of every 2 MiB freed; then requests that may reclaim and compact. Tracepoints
# are only written down if asked for: it shows in what the requests take.
fragment section
kontig load /trace.bin
proc_files f0
[ -z "$EVENTS" ] || trace_begin
settle

[ -z "$EVENTS" ] || echo 1 >&5
kontig time f0 f1

[ -z "$EVENTS" ] || trace_end
proc_files f1
