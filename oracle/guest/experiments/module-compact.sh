# A trace leaves the node full of holes between pages the module lets the kernel move; then the node is compacted.
kontig load /trace.bin
settle
kontig run t0 t1
proc_files f0
trace_begin
exec 6>/sys/devices/system/node/node$node/compact
settle

kontig snap f0
echo 1 >&5
echo 1 >&6
kontig snap f1

trace_end
kontig migrations
proc_files f1
