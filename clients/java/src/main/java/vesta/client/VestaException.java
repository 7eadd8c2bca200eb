package vesta.client;

import java.net.URI;
import java.time.Duration;

/** A failed call of {@link VestaClient}. */
public final class VestaException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String kind;
    private final int status;
    private final URI server;
    private final boolean retry;
    private final Duration retryAfter;

    VestaException(String message, Throwable cause, String kind, int status, URI server, boolean retry, Duration retryAfter) {
        super(message, cause);
        this.kind = kind;
        this.status = status;
        this.server = server;
        this.retry = retry;
        this.retryAfter = retryAfter;
    }

    /** The error of a call after {@code close()}. */
    static VestaException sealed() {
        return new VestaException("the client is closed", null, "SEALED", 0, null, false, Duration.ZERO);
    }

    static VestaException interrupted(InterruptedException cause) {
        Thread.currentThread().interrupt();
        return new VestaException("interrupted", cause, "DEADLINE_EXCEEDED", 0, null, true, Duration.ZERO);
    }

    /** The same error, caused by this one, for another thread. */
    VestaException again() {
        return new VestaException(getMessage(), this, kind, status, server, retry, retryAfter);
    }

    /** The server's name for the error; {@code UNAVAILABLE} without an answer, {@code DEADLINE_EXCEEDED} after a
     * time-out, {@code SEALED} after {@code close()}, empty if a proxy answered. */
    public String kind() {
        return kind;
    }

    /** The HTTP status, or 0 without an answer. */
    public int status() {
        return status;
    }

    /** The server that failed last, or null. */
    public URI server() {
        return server;
    }

    /** Whether a later call may succeed. */
    public boolean retry() {
        return retry;
    }

    /** The time until then that a server named; zero if none did. */
    public Duration retryAfter() {
        return retryAfter;
    }
}
