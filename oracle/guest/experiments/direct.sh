# The node filled, the first three quarters of every 2 MiB freed; then requests that may reclaim and compact. Nothing is
# traced: it would show in what they take.
fragment section
kontig load /trace.bin
proc_files f0
settle

kontig time f0 f1

proc_files f1
