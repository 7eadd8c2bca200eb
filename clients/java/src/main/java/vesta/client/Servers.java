package vesta.client;

import java.lang.ref.WeakReference;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import javax.net.ssl.SSLContext;

/** The servers, the one in use, and the requests to them. Times are in nanoseconds since {@link #START}. */
final class Servers {
    private static final long START = System.nanoTime();
    private static final long FIRST_PAUSE = 50_000_000, LONGEST_PAUSE = 1_000_000_000, LONGEST_RETRY_AFTER = 60_000_000_000L;
    /** The HTTP client of all clients with the TLS of the JVM, and those that are in use with another one: each has threads
     * and connections that nobody can close before Java 21. */
    private static final HttpClient SHARED = http().build();
    private static final Map<SSLContext, WeakReference<HttpClient>> OTHERS = new WeakHashMap<>();

    private static final class Server {
        URI uri;
        volatile long pausedUntil;
        volatile VestaException failure;
    }

    private final List<Server> servers = new ArrayList<>();
    private final String authorization;
    private final Supplier<Map<String, String>> headers;
    private final long maxWait, attempt;
    private final HttpClient http;
    private volatile int at; // the server that answered last
    private volatile VestaException last = new VestaException("", null, "DEADLINE_EXCEEDED", 0, null, true, Duration.ZERO);
    private volatile long pause = FIRST_PAUSE;
    volatile boolean closed;

    Servers(VestaClient.Builder options, long maxWait) {
        String token = options.token;
        if (token != null && !token.matches("[!-~]+")) {
            throw new IllegalArgumentException("the token must be visible ASCII characters");
        }
        authorization = token == null ? null : "Bearer " + token;
        headers = options.headers;
        for (String url : options.servers.split(",")) {
            if (!url.trim().matches("https?://[\\w.:\\[\\]-]+(/[\\w.~/-]*)?")) {
                throw new IllegalArgumentException("a server must be http://HOST:PORT or https://HOST:PORT, without user, query and fragment");
            }
            var server = new Server();
            server.uri = URI.create(url.trim().replaceAll("/+$", ""));
            boolean plain = "http".equals(server.uri.getScheme()) && !options.allowPlaintext;
            if (token != null && plain && !server.uri.getHost().matches("localhost|127(\\.\\d+){3}|\\[::1\\]")) {
                throw new IllegalArgumentException(server.uri + " would get the token in plain text; use https:// or allowPlaintext()");
            }
            servers.add(server);
        }
        this.maxWait = maxWait;
        attempt = VestaClient.check("number of servers", servers.size(), 1, 64) == 1 ? maxWait : maxWait / 2;
        http = options.sslContext == null ? SHARED : http(options.sslContext);
    }

    private static HttpClient.Builder http() {
        return HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1);
    }

    private static synchronized HttpClient http(SSLContext context) {
        var known = OTHERS.get(context);
        HttpClient http = known == null ? null : known.get();
        if (http == null) {
            http = http().sslContext(context).build();
            OTHERS.put(context, new WeakReference<>(http));
        }
        return http;
    }

    /** An answer to another request. */
    private static final class Mistaken extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Mistaken() {
            super("this answer is to another request (its `once` is not the one sent): a cache or a proxy in between repeats answers, "
                    + "or the server is older than this client");
        }
    }

    static void expect(boolean matches) {
        if (!matches) {
            throw new Mistaken();
        }
    }

    /** A text, followed by the {@code once} of its request. */
    static <T> T text(String body, String once, Function<String, T> read) {
        String[] words = body.trim().split(" ");
        T value = read.apply(words[0]);
        expect(words.length == 2 && words[1].equals(once));
        return value;
    }

    static long now() {
        return System.nanoTime() - START;
    }

    /** Asks until there is an answer or an error that stays, or {@code maxWait} is over. */
    <T> T call(String path, BiFunction<String, String, T> read) {
        long deadline = now() + maxWait;
        var request = request();
        while (true) {
            try {
                return ask(request, path, read, deadline);
            } catch (VestaException e) {
                long delay = delay(e);
                // Another attempt needs time, or its time-out would hide this error.
                if (!e.retry() || now() + delay >= deadline - maxWait / 8) {
                    throw e;
                }
                try {
                    TimeUnit.NANOSECONDS.sleep(delay);
                } catch (InterruptedException i) {
                    throw VestaException.interrupted(i);
                }
            }
        }
    }

    /** A request with the headers of the calling thread. */
    HttpRequest.Builder request() {
        var request = HttpRequest.newBuilder();
        headers.get().forEach(request::setHeader);
        return authorization == null ? request : request.setHeader("authorization", authorization);
    }

    /** Time until the servers are asked again. */
    long delay(VestaException error) {
        long most = pause;
        pause = Math.min(2 * most, LONGEST_PAUSE);
        return error.retry() ? Math.max(error.retryAfter().toNanos(), ThreadLocalRandom.current().nextLong(most / 2, most)) : LONGEST_PAUSE;
    }

    /** Asks each server once, beginning with the one that answered last. */
    <T> T ask(HttpRequest.Builder request, String path, BiFunction<String, String, T> read, long deadline) {
        int first = at;
        for (int i = first; i < first + servers.size(); i++) {
            Server server = servers.get(i % servers.size());
            long now = now();
            if (closed) {
                throw VestaException.sealed();
            }
            if (now < server.pausedUntil) {
                continue;
            }
            VestaException failure;
            try {
                String once = path.endsWith("&once=") ? String.format("%016x", ThreadLocalRandom.current().nextLong()) : "";
                String body = get(request, server.uri, path + once, Math.min(attempt, Math.max(deadline - now, 1_000_000)));
                T answer = read.apply(body, once);
                server.failure = null;
                at = i % servers.size();
                pause = FIRST_PAUSE;
                return answer;
            } catch (VestaException e) {
                if (!e.retry()) {
                    throw e;
                }
                failure = e;
            } catch (RuntimeException e) {
                failure = new VestaException(server.uri + ": " + (e instanceof Mistaken ? e.getMessage() : "not an answer of Vesta"), e, "INTERNAL", 200, server.uri, true, Duration.ZERO);
            }
            last = server.failure = failure;
            server.pausedUntil = now() + Math.min(failure.retryAfter().toNanos(), LONGEST_RETRY_AFTER);
        }
        throw unanswered("");
    }

    /** The last error, with what each server said. */
    VestaException unanswered(String start) {
        long wait = servers.stream().mapToLong(server -> server.pausedUntil).min().orElse(0) - now();
        String said = servers.stream().map(server -> {
            VestaException failure = server.failure;
            return failure == null ? server.uri + ": no answer yet" : failure.getMessage();
        }).collect(Collectors.joining("; "));
        return new VestaException(start + said, last, last.kind(), last.status(), last.server(), true, Duration.ofNanos(Math.max(wait, 0)));
    }

    private String get(HttpRequest.Builder given, URI server, String path, long limit) {
        var request = given.copy().uri(URI.create(server + path)).timeout(Duration.ofNanos(limit));
        var sent = http.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString());
        try {
            // The timeout of the request ends with its headers, this one with its body.
            HttpResponse<String> answer = sent.get(limit, TimeUnit.NANOSECONDS);
            if (answer.statusCode() == 200) {
                return answer.body();
            }
            throw refusal(server, answer);
        } catch (InterruptedException e) {
            sent.cancel(true);
            throw VestaException.interrupted(e);
        } catch (ExecutionException | TimeoutException e) {
            sent.cancel(true);
            Throwable cause = e instanceof TimeoutException ? e : e.getCause();
            boolean late = e instanceof TimeoutException || cause instanceof HttpTimeoutException;
            String why = late ? "no answer within " + limit / 1_000_000 + " ms" : cause.getMessage() == null ? cause.toString() : cause.getMessage();
            throw new VestaException(server + ": " + why, cause, late ? "DEADLINE_EXCEEDED" : "UNAVAILABLE", 0, server, true, Duration.ZERO);
        }
    }

    private static VestaException refusal(URI server, HttpResponse<String> answer) {
        int status = answer.statusCode();
        String kind = "", why = ": not an answer of Vesta";
        String seconds = answer.headers().firstValue("retry-after").filter(it -> it.matches("\\d{1,6}")).orElse("0");
        long wait = 1000 * Long.parseLong(seconds);
        try {
            var problem = Json.object(answer.body());
            String named = Json.member(problem, "kind", String.class), detail = Json.member(problem, "detail", String.class);
            if (problem.containsKey("retryAfterMs")) {
                wait = Math.max(0, Math.min(Json.number(problem, "retryAfterMs"), 1_000_000_000));
            }
            why = (" " + named + ": " + detail).replaceAll("\\p{Cntrl}", " ");
            why = why.substring(0, Math.min(why.length(), 300));
            kind = named;
        } catch (IllegalArgumentException | ArithmeticException e) {
            // The answer of a proxy.
        }
        // Another server may have what this one, which is none of ours, has not.
        boolean retry = status == 404 || status == 429 || status >= 500 || status >= 400 && kind.isEmpty();
        return new VestaException(server + ": " + status + why, null, kind, status, server, retry, Duration.ofMillis(wait));
    }

    @Override
    public String toString() {
        return servers.stream().map(server -> server.uri.toString()).collect(Collectors.joining(","));
    }
}
