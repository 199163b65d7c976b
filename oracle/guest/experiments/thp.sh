# The node full of holes between a process's pages, at random; then huge page faults that leave compaction to the
# daemon: a round of them, time for it to work, and another round.
echo madvise >/sys/kernel/mm/transparent_hugepage/enabled
echo defer >/sys/kernel/mm/transparent_hugepage/defrag
fragment random
proc_files f0
trace_begin
settle

kontig snap f0
echo 1 >&5
/bin/fragmenter faults 256 /tmp/thp.txt /tmp/first &
while [ ! -e /tmp/first ]; do sleep 0.1; done
kontig watch 4
kontig snap f1
proc_files f1
/bin/fragmenter faults 256 /tmp/thp2.txt /tmp/second &
while [ ! -e /tmp/second ]; do sleep 0.1; done
kontig snap f2

trace_end
give thp.txt /tmp/thp.txt
give thp2.txt /tmp/thp2.txt
proc_files f2
