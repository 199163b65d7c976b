# A trace of what is done to pages that reclaim can take, between two states; with memory of a process and swap, where
# the trace asks for it.
# Where its memory lies says how many page tables it needs.
sysctl kernel.randomize_va_space 0
if [ -n "$SWAP_KIB" ]; then
    $busybox insmod /brd.ko rd_nr=1 rd_size=$SWAP_KIB || fail "there is no memory to swap to"
    $busybox mkswap /dev/ram0 >/dev/null && $busybox swapon /dev/ram0 || fail "swap cannot be switched on"
    # What one page's fault brings back is that page.
    sysctl vm.page-cluster 0
fi
if [ -n "$GROUP_PATHS" ]; then
    # In the order of their numbers: a group comes after the one it is in. With favordynmods a move from one to another
    # does not wait until all CPUs have been idle.
    tree=/sys/fs/cgroup
    $busybox mount -t cgroup2 -o memory_recursiveprot,favordynmods cgroup2 $tree || fail "there are no control groups"
    for group in $GROUP_PATHS; do
        echo +memory >$tree${group%/*}/cgroup.subtree_control || fail "no group can be made below $group"
        $busybox mkdir $tree$group && kontig group $group
    done
fi
# In the order they came, without times: what the host does beside shows in the last digits of these.
echo counter >$tracing/trace_clock
kontig load /trace.bin
proc_files t0
trace_begin vmscan
settle

echo 1 >&5
/bin/runner $PAGES || fail "the trace"

trace_end
proc_files t1
