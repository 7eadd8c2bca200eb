import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.util.function.LongSupplier;

import com.baidu.fsg.uid.impl.DefaultUidGenerator;
import com.sankuai.inf.leaf.common.Result;
import com.sankuai.inf.leaf.common.Status;
import com.sankuai.inf.leaf.snowflake.SnowflakeIDGenImpl;
import me.ahoo.cosid.snowflake.ClockSyncSnowflakeId;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;

/** Writes IDs of one generator with machine ID 1 to a file: Peer NAME FILE SECONDS. */
public class Peer {
    private static LongSupplier generator(String name) throws Exception {
        switch (name) {
            case "leaf": {
                SnowflakeIDGenImpl leaf = new SnowflakeIDGenImpl("", 0);
                return () -> {
                    Result result = leaf.get("");
                    if (result.getStatus() == Status.EXCEPTION) {
                        throw new IllegalStateException("refused");
                    }
                    return result.getId();
                };
            }
            case "cosid":
                return new ClockSyncSnowflakeId(new MillisecondSnowflakeId(1))::generate;
            case "uid-generator": {
                DefaultUidGenerator uid = new DefaultUidGenerator();
                // The default 28 bits of time ended in 2024.
                uid.setTimeBits(29);
                uid.setWorkerBits(21);
                uid.setWorkerIdAssigner(() -> 1);
                uid.afterPropertiesSet();
                return uid::getUID;
            }
            default:
                throw new IllegalArgumentException(name);
        }
    }

    public static void main(String[] args) throws Exception {
        LongSupplier generator = generator(args[0]);
        long errors = 0, longest = 0, last = System.nanoTime();
        long end = last + (long) (Double.parseDouble(args[2]) * 1e9);
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(args[1]), 1 << 16))) {
            while (last < end) {
                try {
                    out.writeLong(generator.getAsLong());
                    long now = System.nanoTime();
                    longest = Math.max(longest, now - last);
                    last = now;
                } catch (RuntimeException refused) {
                    errors++;
                    if (System.nanoTime() > end) {
                        break;
                    }
                }
            }
        }
        System.out.println(errors + " " + longest / 1_000_000);
    }
}
