# The node filled, three quarters freed: the first of every 2 MiB, or, for requests smaller than that, at random; then
# requests that may reclaim and compact. Tracepoints are only written down if asked for: it shows in what those take.
fragment $HOLES
kontig load /trace.bin
proc_files f0
[ -z "$EVENTS" ] || trace_begin
settle

[ -z "$EVENTS" ] || echo 1 >&5
kontig time f0 f1

[ -z "$EVENTS" ] || trace_end
proc_files f1
