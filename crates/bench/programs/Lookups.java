// A heap of small objects that are found one through the other: each lookup waits for the one before.
import java.lang.management.ManagementFactory;
import java.util.HashMap;

class Lookups {
    public static void main(String[] args) throws java.io.IOException {
        int entries = Integer.parseInt(args[0]);
        int lookups = Integer.parseInt(args[1]);
        int rounds = Integer.parseInt(args[2]);
        HashMap<Integer, Integer> map = new HashMap<>();
        for (int i = 0; i < entries; i++) {
            map.put(i, i);
        }
        var thread = ManagementFactory.getThreadMXBean();
        System.out.println("ready");
        System.in.read();
        // The first round compiles the loop.
        for (int round = 0; round < rounds; round++) {
            long state = 1;
            long begin = thread.getCurrentThreadCpuTime();
            for (int i = 0; i < lookups; i++) {
                int key = (int) ((state >>> 33) % entries);
                state = state * 0x5851f42d4c957f2dL + map.get(key);
            }
            long ns = thread.getCurrentThreadCpuTime() - begin;
            System.out.println("round_ns " + ns + " " + state);
        }
    }
}
