# The node full of holes between a process's pages, at random; then huge page faults that leave compaction to the
# daemon: a round of them, time for it to work, and another round. Each round's pages are given back at its end. Huge
# pages are only switched on when the node is prepared: that raises its watermarks.
fragment random
proc_files f0
trace_begin
exec 6>/sys/kernel/mm/transparent_hugepage/enabled 7>/sys/kernel/mm/transparent_hugepage/defrag
settle

kontig snap f0
echo 1 >&5
echo defer >&7
echo madvise >&6
kontig watch 8 &
/bin/fragmenter faults 256 $PAUSE_US /tmp/thp.txt || fail "the first round"
sleep 4
kontig snap f1
proc_files f1
/bin/fragmenter faults 256 $PAUSE_US /tmp/thp2.txt || fail "the second round"
wait $! || fail "watching"
kontig snap f2

trace_end
give thp.txt /tmp/thp.txt
give thp2.txt /tmp/thp2.txt
proc_files f2
