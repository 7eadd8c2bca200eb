package vesta.client;

import static vesta.client.Servers.now;

import com.robert.vesta.service.bean.Id;
import com.robert.vesta.service.intf.IdService;
import java.net.http.HttpRequest;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;

/** IDs from Vesta over REST, taken ahead, as the {@code IdService} of the Java Vesta. Thread-safe. IDs are unsigned: print
 * them with {@link Long#toUnsignedString(long)}. Calls fail with {@link VestaException}. */
public final class VestaClient implements IdService, AutoCloseable {
    private static final int MAX_COUNT = 1_048_576;
    private static final long OFTEN = 10_000_000_000L; // a refill that soon after the last one asks for twice as many

    private static final class Run {
        long next;
        long step;
        int left;
        long expiry;
    }

    private final Servers servers;
    private final int batch;
    private final long maxWait, maxAge;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final ArrayDeque<Run> runs = new ArrayDeque<>();
    private int left, goal = 1; // IDs in memory, IDs to have there
    private long awaited, nextTry, filled = -OFTEN;
    private boolean filling;
    private VestaException failed;

    /** Options of a client. */
    public static final class Builder {
        final String servers;
        String token;
        int batch = 10_000;
        Duration maxWait = Duration.ofSeconds(2), maxAge = Duration.ofSeconds(60);
        Supplier<Map<String, String>> headers = Map::of;
        SSLContext sslContext;
        boolean allowPlaintext;

        private Builder(String servers) {
            this.servers = servers;
        }

        /** The bearer token; default none. */
        public Builder token(String token) {
            this.token = token;
            return this;
        }

        /** Most IDs in memory, 1 to 1,048,576; default 10,000. */
        public Builder batch(int batch) {
            this.batch = batch;
            return this;
        }

        /** Longest wait of a call, 1 ms to 1 h; default 2 s. */
        public Builder maxWait(Duration maxWait) {
            this.maxWait = maxWait;
            return this;
        }

        /** Age at which IDs in memory are dropped, 1 ms to 100 years; default 60 s. */
        public Builder maxAge(Duration maxAge) {
            this.maxAge = maxAge;
            return this;
        }

        /** More headers of a request, such as {@code traceparent}; asked for in the thread of the call that sends it. */
        public Builder headers(Supplier<Map<String, String>> headers) {
            this.headers = headers;
            return this;
        }

        /** TLS with other authorities or a client certificate; default that of the JVM. */
        public Builder sslContext(SSLContext sslContext) {
            this.sslContext = sslContext;
            return this;
        }

        /** Sends the token without encryption to other hosts too. */
        public Builder allowPlaintext() {
            this.allowPlaintext = true;
            return this;
        }

        /** The client. Nothing is sent before its first call. */
        public VestaClient build() {
            return new VestaClient(this);
        }
    }

    /** A client with default options. {@code servers} are one or more URLs, separated by commas. */
    public VestaClient(String servers) {
        this(builder(servers));
    }

    /** A client with a token and otherwise default options. */
    public VestaClient(String servers, String token) {
        this(builder(servers).token(token));
    }

    /** Options of a client of these servers: one or more URLs, separated by commas. */
    public static Builder builder(String servers) {
        return new Builder(servers);
    }

    private VestaClient(Builder options) {
        batch = (int) check("batch", options.batch, 1, MAX_COUNT);
        maxWait = 1_000_000 * check("maxWait in ms", options.maxWait.toMillis(), 1, 3_600_000);
        maxAge = 1_000_000 * check("maxAge in ms", options.maxAge.toMillis(), 1, 3_153_600_000_000L);
        servers = new Servers(options, maxWait);
    }

    static long check(String name, long value, long min, long max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(name + " must be " + min + " to " + max + ", but is " + value);
        }
        return value;
    }

    /** A new ID, from memory; if that is empty, waits for a server. */
    @Override
    public long genId() {
        lock.lock();
        try {
            boolean fresh = left > goal / 2 && runs.peek().expiry > now();
            return (fresh ? pop(1) : take(1))[0];
        } finally {
            lock.unlock();
        }
    }

    /** Several new IDs, 1 to 1,048,576: all or none. */
    public long[] genIds(int count) {
        check("count", count, 1, MAX_COUNT);
        lock.lock();
        try {
            return take(count);
        } finally {
            lock.unlock();
        }
    }

    /** The fields of an ID, by the server's layout. */
    @Override
    public Id expId(long id) {
        String text = Long.toUnsignedString(id);
        return servers.call("/v1/ids/" + text, (body, once) -> {
            var fields = Json.object(body);
            Servers.expect(Json.member(fields, "id", String.class).equals(text));
            return new Id(Json.number(fields, "machine"), Json.number(fields, "seq"), Json.number(fields, "time"), Json.number(fields, "genMethod"),
                    Json.number(fields, "type"), Json.number(fields, "version"));
        });
    }

    /** An ID assembled from its fields, for tests and repairs: it is not a new one. In the shorter forms, the other fields
     * have the server's own values. */
    @Override
    public long makeId(long time, long seq) {
        return make(time, seq, "");
    }

    @Override
    public long makeId(long time, long seq, long machine) {
        return make(time, seq, "&machine=" + machine);
    }

    @Override
    public long makeId(long genMethod, long time, long seq, long machine) {
        return make(time, seq, "&machine=" + machine + "&genMethod=" + genMethod);
    }

    @Override
    public long makeId(long type, long genMethod, long time, long seq, long machine) {
        return make(time, seq, "&machine=" + machine + "&genMethod=" + genMethod + "&type=" + type);
    }

    @Override
    public long makeId(long version, long type, long genMethod, long time, long seq, long machine) {
        return make(time, seq, "&machine=" + machine + "&genMethod=" + genMethod + "&type=" + type + "&version=" + version);
    }

    private long make(long time, long seq, String more) {
        return servers.call("/makeid?time=" + time + "&seq=" + seq + more + "&once=", (body, once) -> Servers.text(body, once, Long::parseUnsignedLong));
    }

    /** The moment at which a tick of the server's layout begins. */
    @Override
    public Date transTime(long time) {
        return servers.call("/transtime?time=" + time + "&once=", (body, once) -> Servers.text(body, once, text -> Date.from(Instant.parse(text))));
    }

    /** Drops the IDs in memory. Calls in progress and later ones fail with the kind {@code SEALED}. */
    @Override
    public void close() {
        lock.lock();
        servers.closed = true;
        runs.clear();
        left = 0;
        changed.signalAll();
        lock.unlock();
    }

    @Override
    public String toString() {
        return "VestaClient[" + servers + "]";
    }

    /** Slow path, with the lock held: refills, and waits if too few IDs are left. */
    private long[] take(int count) {
        long deadline = now() + maxWait;
        awaited += count;
        try {
            while (true) {
                if (servers.closed) {
                    throw VestaException.sealed();
                }
                long now = now();
                while (!runs.isEmpty() && runs.peek().expiry <= now) {
                    int dropped = runs.remove().left;
                    left -= dropped;
                    goal = Math.max(goal - dropped, 1);
                }
                if (!filling && now >= nextTry && left - awaited < goal / 2) {
                    int larger = now - filled < OFTEN ? Math.min(2 * goal, batch) : goal;
                    int wanted = (int) Math.min(Math.max(larger - left, awaited), MAX_COUNT);
                    var request = servers.request();
                    var filler = new Thread(() -> fill(request, wanted, larger), "vesta-refill");
                    filler.setDaemon(true);
                    filler.start();
                    filling = true;
                }
                if (left >= count) {
                    return pop(count);
                }
                if (!filling && failed != null && (!failed.retry() || nextTry >= deadline)) {
                    throw failed.retry() ? servers.unanswered("") : failed.again();
                }
                if (now >= deadline) {
                    throw servers.unanswered("no ID within " + maxWait / 1_000_000 + " ms: ");
                }
                changed.awaitNanos((filling ? deadline : Math.min(nextTry, deadline)) - now);
            }
        } catch (InterruptedException e) {
            throw VestaException.interrupted(e);
        } finally {
            awaited -= count;
        }
    }

    private long[] pop(int count) {
        var ids = new long[count];
        for (int i = 0; i < count; i++) {
            Run run = runs.peek();
            ids[i] = run.next;
            run.next += run.step;
            if (--run.left == 0) {
                runs.remove();
            }
        }
        left -= count;
        return ids;
    }

    private void fill(HttpRequest.Builder request, int count, int larger) {
        long expiry = now() + maxAge;
        List<Run> got = List.of();
        VestaException error = null;
        try {
            got = servers.ask(request, "/v1/runs?count=" + count + "&once=", (body, once) -> runs(body, once, count, expiry), Long.MAX_VALUE);
        } catch (VestaException e) {
            error = e;
        } finally {
            lock.lock();
            filling = false;
            failed = error;
            if (error != null) {
                nextTry = now() + servers.delay(error);
            } else if (!got.isEmpty() && !servers.closed) {
                goal = larger;
                filled = now();
                runs.addAll(got);
                left += count;
            }
            changed.signalAll();
            lock.unlock();
        }
    }

    private static List<Run> runs(String body, String once, int count, long expiry) {
        var answer = Json.object(body);
        var given = Json.member(answer, "runs", List.class);
        Servers.expect(once.equals(answer.get("once")));
        var runs = new ArrayList<Run>();
        var open = new ArrayList<Run>(); // runs that reach beyond the first ID of the next one
        long total = 0;
        for (Object item : given) {
            var it = (Map<?, ?>) item;
            var run = new Run();
            run.next = Long.parseUnsignedLong(Json.member(it, "first", String.class));
            run.step = Long.parseUnsignedLong(Json.member(it, "step", String.class));
            long n = Json.number(it, "count");
            long room = n < 2 ? -1 : Long.divideUnsigned(-1 - run.next, n - 1);
            if (n < 1 || n > count || run.step == 0 || Long.compareUnsigned(run.step, room) > 0) {
                throw new IllegalArgumentException("a run is out of range");
            }
            run.left = (int) n;
            run.expiry = expiry;
            open.removeIf(one -> Long.compareUnsigned(one.next + one.step * (one.left - 1), run.next) < 0);
            boolean meets = open.stream()
                .anyMatch(one -> one.step != run.step || Long.remainderUnsigned(run.next - one.next, one.step) == 0);
            boolean ascends = runs.isEmpty() || Long.compareUnsigned(run.next, runs.get(runs.size() - 1).next) > 0;
            if (meets || !ascends) {
                throw new IllegalArgumentException("runs share an ID");
            }
            total += n;
            runs.add(run);
            open.add(run);
        }
        if (total != count) {
            throw new IllegalArgumentException("expected runs of " + count + " IDs");
        }
        return runs;
    }
}
