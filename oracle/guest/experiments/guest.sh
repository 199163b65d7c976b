# A pattern of a program on a machine of one node, as an administrator would have it: disks with files and swap, huge
# pages for those that ask for them, and all that the kernel does by itself. The memory of the disks is not the
# kernel's.
sysctl vm.stat_interval 1
sysctl vm.compaction_proactiveness 20
# Where memory lies says how many page tables it needs.
sysctl kernel.randomize_va_space 0
kontig disk files $FILES_AT $FILES_MIB
kontig disk swap $SWAP_AT $SWAP_MIB
$busybox mke2fs -m 0 -b 4096 /dev/files >/dev/null || fail "there is no file system"
$busybox mkdir /files
$busybox mount -t ext4 -o noatime /dev/files /files || fail "the file system cannot be mounted"
$busybox mkswap /dev/swap >/dev/null && $busybox swapon /dev/swap || fail "swap cannot be switched on"
# It would join small pages to huge ones in its own time.
echo 1000000000 >/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs
echo madvise >/sys/kernel/mm/transparent_hugepage/enabled
/bin/player prepare /steps.txt /files || fail "the files cannot be made"
sysctl vm.drop_caches 3
settle
kontig extfrag

/bin/player play /steps.txt /files || fail "the pattern"
