import com.github.wujun234.uid.impl.DefaultUidGenerator;
import com.github.wujun234.uid.impl.UidProperties;
import com.github.wujun234.uid.worker.WorkerIdAssigner;
import org.springframework.beans.factory.InitializingBean;

/** Prints UIDs of uid-generator and what it says of each: Uid EPOCHSTR TIMEBITS WORKERBITS SEQBITS WORKER COUNT. */
public class Uid {
    public static void main(String[] args) throws Exception {
        UidProperties properties = new UidProperties();
        properties.setEpochStr(args[0]);
        properties.setTimeBits(Integer.parseInt(args[1]));
        properties.setWorkerBits(Integer.parseInt(args[2]));
        properties.setSeqBits(Integer.parseInt(args[3]));
        long worker = Long.parseLong(args[4]);
        DefaultUidGenerator generator = new DefaultUidGenerator(properties);
        generator.setWorkerIdAssigner(new WorkerIdAssigner() {
            @Override
            public long assignWorkerId() {
                return worker;
            }

            @Override
            public long assignFakeWorkerId() {
                return worker;
            }
        });
        ((InitializingBean) generator).afterPropertiesSet();
        for (int i = Integer.parseInt(args[5]); i > 0; i--) {
            System.out.println(generator.parseUID(generator.getUID()));
        }
    }
}
