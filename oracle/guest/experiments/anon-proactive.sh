# The node full of holes between a process's pages, at random; then proactive compaction is switched on and watched.
fragment random
proc_files f0
trace_begin
exec 6>/proc/sys/vm/compaction_proactiveness
settle

kontig snap f0
echo 1 >&5
echo $PROACTIVENESS >&6
kontig watch 4
kontig snap f1

trace_end
proc_files f1
