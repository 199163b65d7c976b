# The node full of holes between a process's pages, at random; then it is compacted.
fragment random
proc_files f0
trace_begin
exec 6>/sys/devices/system/node/node$node/compact
settle

kontig snap f0
echo 1 >&5
echo 1 >&6
kontig snap f1

trace_end
proc_files f1
