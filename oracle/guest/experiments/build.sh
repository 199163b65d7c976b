# A real program under pressure: a part of a kernel is built where a file in memory holds most of what there is. Huge
# pages are for everybody, as desktops have them.
sysctl vm.stat_interval 1
sysctl vm.compaction_proactiveness 20
kontig disk files $FILES_AT $FILES_MIB
kontig disk swap $SWAP_AT $SWAP_MIB
$busybox mkdir /files /held
# The host has put the file system and all that the build needs on this disk.
$busybox mount -t ext4 -o noatime /dev/files /files || fail "the disk with the sources cannot be mounted"
$busybox mount -t devtmpfs devtmpfs /files/dev
$busybox mkswap /dev/swap >/dev/null && $busybox swapon /dev/swap || fail "swap cannot be switched on"
# It would join small pages to huge ones in its own time.
echo 1000000000 >/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs
echo always >/sys/kernel/mm/transparent_hugepage/enabled
echo madvise >/sys/kernel/mm/transparent_hugepage/defrag
$busybox mount -t tmpfs -o size=$((HELD_MIB + 1))M tmpfs /held
# Not of zeros: some kernels write none to swap.
$busybox yes kontig | $busybox dd of=/held/file bs=1M count=$HELD_MIB iflag=fullblock 2>/dev/null || fail "no held file"
sysctl vm.drop_caches 3
settle
kontig extfrag

/bin/sampler $SAMPLE_MS /files /usr/bin/make -s -C /s -j$JOBS "SOURCES=$SOURCES" || fail "the build"
