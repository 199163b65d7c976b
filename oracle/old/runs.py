"""Counts the runs of compaction in each zone of a trace: how they ended, and who reset the zone."""

import collections
import re
import sys

LINE = re.compile(r"\s*(\S+)-(\d+)\s+\[\d+\] \S+\s+[\d.]+: (\w+): (.*)")
# What compact_zone returns in 3.13.
ENDS = {"0": "skipped", "1": "to go on", "2": "partial", "3": "complete"}


def main(path):
    counts = collections.defaultdict(collections.Counter)
    zone_of = {}
    with open(path, errors="replace") as lines:
        for comm, pid, event, rest in (m.groups() for m in map(LINE.match, lines) if m):
            by = "kswapd" if comm.startswith("kswapd") else "requests"
            at = re.search(r"zone=([0-9a-f]+)", rest)
            if event == "run":
                zone_of[pid] = at[1]
            elif event == "end" and pid in zone_of:
                ret = re.search(r"ret=([0-9a-f]+)", rest)[1]
                counts[zone_of[pid]][f"{ENDS.get(ret, ret)}, {by}"] += 1
            elif event == "reset":
                counts[at[1]][f"reset, {by}"] += 1
    for zone in sorted(counts, key=lambda start: int(start, 16)):
        print(f"zone from pfn 0x{zone}:", ", ".join(f"{what} {n}" for what, n in sorted(counts[zone].items())))


if __name__ == "__main__":
    main(sys.argv[1])
