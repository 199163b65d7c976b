# The node full of holes between a process's pages, at random; then requests that may only wake the daemons.
fragment random
kontig load /trace.bin
proc_files f0
trace_begin
settle

echo 1 >&5
kontig time f0 f1

trace_end
proc_files f1
