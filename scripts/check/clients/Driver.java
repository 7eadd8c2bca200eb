import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import vesta.client.IdFormat;
import vesta.client.VestaClient;
import vesta.client.VestaException;

/** Runs the commands of its input with the Java client: see run.py. */
public final class Driver {
    static VestaClient client;
    static VestaClient.Builder another;
    static CompletableFuture<String> begun;
    static final ThreadLocal<String> TRACE = new ThreadLocal<>();

    /** A token among them has no effect. */
    static Map<String, String> headers() {
        return TRACE.get() == null ? Map.of() : Map.of("traceparent", TRACE.get(), "Authorization", "Bearer other");
    }

    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            String[] words = line.split(" ");
            var pairs = new HashMap<String, String>();
            for (String word : words) {
                int at = word.indexOf('=');
                if (at > 0) {
                    pairs.put(word.substring(0, at), word.substring(at + 1));
                }
            }
            say(words[0].equals("end") ? begun.get() : guarded(() -> answer(words, pairs)));
        }
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static String guarded(Callable<String> work) {
        try {
            return "ok " + work.call();
        } catch (VestaException e) {
            return String.format("error %s %d %d %d %s %s", e.kind().isEmpty() ? "-" : e.kind(), e.status(), e.retry() ? 1 : 0,
                    e.retryAfter().toMillis(), e.server() == null ? "-" : e.server(), e.getMessage());
        } catch (Exception e) {
            return "refused " + e.getMessage();
        }
    }

    static String text(LongStream ids) {
        return ids.mapToObj(Long::toUnsignedString).collect(Collectors.joining(" "));
    }

    static long part(Map<String, String> pairs, String name) {
        return Long.parseLong(pairs.get(name));
    }

    static String answer(String[] words, Map<String, String> pairs) throws Exception {
        switch (words[0]) {
            case "new":
                var builder = VestaClient.builder(pairs.get("servers")).token(pairs.get("token")).headers(Driver::headers);
                if (pairs.containsKey("batch")) {
                    builder.batch(Integer.parseInt(pairs.get("batch")));
                }
                if (pairs.containsKey("max_wait")) {
                    builder.maxWait(Duration.ofMillis(part(pairs, "max_wait")));
                }
                if (pairs.containsKey("max_age")) {
                    builder.maxAge(Duration.ofMillis(part(pairs, "max_age")));
                }
                if (pairs.containsKey("ca")) {
                    builder.sslContext(trusting(pairs.get("ca")));
                }
                another = builder;
                client = builder.build();
                return client.toString();
            case "take":
                return text(LongStream.range(0, Long.parseLong(words[1])).map(i -> client.genId()));
            case "many":
                return text(LongStream.of(client.genIds(Integer.parseInt(words[1]))));
            case "explain":
                var id = client.expId(Long.parseUnsignedLong(words[1]));
                return text(LongStream.of(id.getTime(), id.getSeq(), id.getMachine(), id.getGenMethod(), id.getType(), id.getVersion()));
            case "make":
                return Long.toUnsignedString(make(pairs));
            case "trans":
                return "" + client.transTime(Long.parseLong(words[1])).getTime();
            case "encode":
                return IdFormat.encode(Long.parseUnsignedLong(pairs.get("id")), pairs.get("format"));
            case "decode":
                return Long.toUnsignedString(IdFormat.decode(pairs.get("text"), pairs.get("format")));
            case "traced":
                TRACE.set(words[1]);
                try {
                    return answer(Arrays.copyOfRange(words, 2, words.length), pairs);
                } finally {
                    TRACE.remove();
                }
            case "begin":
                begun = CompletableFuture.supplyAsync(() -> guarded(() -> "" + client.genId()));
                return "";
            case "close":
                client.close();
                return "";
            case "short":
                var users = new ArrayList<CompletableFuture<Long>>();
                for (int i = 0; i < Integer.parseInt(words[1]); i++) {
                    var user = new CompletableFuture<Long>();
                    users.add(user);
                    new Thread(() -> user.completeAsync(Driver::used, Runnable::run)).start();
                }
                return text(users.stream().mapToLong(CompletableFuture::join));
            case "closed":
                return text(LongStream.range(0, Long.parseLong(words[1])).map(i -> used()));
            case "run":
                return run(Integer.parseInt(words[1]), Integer.parseInt(words[2]), Path.of(words[3]));
            case "bench":
                client.genId();
                long start = System.nanoTime(), n = 0;
                while (System.nanoTime() - start < Double.parseDouble(words[1]) * 1e9) {
                    for (int i = 0; i < 1000; i++) {
                        client.genId();
                    }
                    n += 1000;
                }
                return n + " " + (System.nanoTime() - start) / 1000;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** The form of makeId that takes these parts, in the documented order. */
    static long make(Map<String, String> parts) {
        long time = part(parts, "time"), seq = part(parts, "seq");
        switch (parts.size()) {
            case 2:
                return client.makeId(time, seq);
            case 3:
                return client.makeId(time, seq, part(parts, "machine"));
            case 4:
                return client.makeId(part(parts, "genMethod"), time, seq, part(parts, "machine"));
            case 5:
                return client.makeId(part(parts, "type"), part(parts, "genMethod"), time, seq, part(parts, "machine"));
            default:
                return client.makeId(part(parts, "version"), part(parts, "type"), part(parts, "genMethod"), time, seq, part(parts, "machine"));
        }
    }

    /** The ID of a client of its own. */
    static long used() {
        try (var it = another.build()) {
            return it.genId();
        }
    }

    static String run(int threads, int count, Path path) throws Exception {
        var workers = new ArrayList<Thread>();
        var lots = new ArrayList<List<Long>>();
        var failed = new CompletableFuture<Void>();
        for (int nth = 0; nth < threads; nth++) {
            var ids = new ArrayList<Long>();
            boolean tells = nth == 0;
            lots.add(ids);
            workers.add(new Thread(() -> {
                while (ids.size() < count / threads) {
                    try {
                        ids.add(client.genId());
                    } catch (RuntimeException e) {
                        failed.completeExceptionally(e);
                        return;
                    }
                    if (tells && ids.size() % 5000 == 0) {
                        say("at " + ids.size());
                    }
                }
            }));
        }
        workers.forEach(Thread::start);
        for (Thread worker : workers) {
            worker.join();
        }
        if (failed.isCompletedExceptionally()) {
            failed.join();
        }
        var text = lots.stream().flatMap(List::stream).map(Long::toUnsignedString).collect(Collectors.toList());
        Files.write(path, text);
        return "";
    }

    static SSLContext trusting(String path) throws Exception {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var file = new FileInputStream(path)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }
}
