package vesta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	firstPause        = 50 * time.Millisecond // between attempts while every server fails
	longestPause      = time.Second
	longestRetryAfter = 60 * time.Second
	maxBody           = 1 << 20
)

// Error is a failed call.
type Error struct {
	Message    string
	Kind       string        // the server's name for the error; UNAVAILABLE without an answer, DEADLINE_EXCEEDED after a time-out, SEALED after Close, empty if a proxy answered
	Status     int           // HTTP status, or 0 without an answer
	Server     string        // the server that failed last
	Retry      bool          // whether a later call may succeed
	RetryAfter time.Duration // the time until then, if a server named one
	cause      error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.cause }

// An answer to another request.
var errMistaken = errors.New("this answer is to another request (its `once` is not the one sent): a cache or a proxy in between " +
	"repeats answers, or the server is older than this client")

// The members of a JSON object. Their names are exact, unlike those of a struct.
type members map[string]json.RawMessage

func parse(body []byte) (it members, err error) { return it, json.Unmarshal(body, &it) }

func (m members) read(name string, into any) error {
	if err := json.Unmarshal(m[name], into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

type server struct {
	url         string
	pausedUntil time.Time
	failure     *Error
}

func (c *Client) call(ctx context.Context, path string, read func([]byte, string) error) error {
	deadline, header := time.Now().Add(c.config.MaxWait), c.header(ctx)
	for {
		err := c.ask(ctx, header, path, deadline, read)
		if err == nil {
			return nil
		}
		c.mu.Lock()
		delay := c.delay(err)
		c.mu.Unlock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// Another attempt needs time, or its time-out would hide this error.
		if !err.Retry || time.Now().Add(delay).After(deadline.Add(-c.config.MaxWait/8)) {
			return err
		}
		if err := wait(ctx, c.closing.Done(), delay); err != nil {
			return err
		}
	}
}

func (c *Client) header(ctx context.Context) http.Header {
	header := http.Header{}
	if c.config.Headers != nil {
		for name, values := range c.config.Headers(ctx) {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if c.config.Token != "" {
		header.Set("Authorization", "Bearer "+c.config.Token)
	}
	return header
}

// Time until the servers are asked again.
func (c *Client) delay(err *Error) time.Duration {
	pause := c.pause
	c.pause = min(2*pause, longestPause)
	if !err.Retry {
		return longestPause
	}
	return max(err.RetryAfter, pause/2+time.Duration(rand.Int63n(int64(pause/2))))
}

// Asks each server once, beginning with the one that answered last.
func (c *Client) ask(ctx context.Context, header http.Header, path string, deadline time.Time, read func([]byte, string) error) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.at
	for i := range c.servers {
		at := (first + i) % len(c.servers)
		server := &c.servers[at]
		now, limit := time.Now(), c.attempt
		if c.closing.Err() != nil {
			return sealed()
		}
		if now.Before(server.pausedUntil) {
			continue
		}
		if !deadline.IsZero() {
			limit = min(limit, max(deadline.Sub(now), time.Millisecond))
		}
		c.mu.Unlock()
		once := ""
		if strings.HasSuffix(path, "&once=") {
			once = fmt.Sprintf("%08x%08x", rand.Uint32(), rand.Uint32())
		}
		body, failure := c.get(ctx, header, server.url, path+once, limit)
		if failure == nil {
			if err := read(body, once); err != nil {
				why := err.Error()
				if err != errMistaken {
					why = "not an answer of Vesta: " + strings.ReplaceAll(why, "\n", "; ")
				}
				failure = &Error{server.url + ": " + why, "INTERNAL", 200, server.url, true, 0, err}
				c.http.CloseIdleConnections() // more such answers may be on their way
			}
		}
		c.mu.Lock()
		if failure == nil {
			c.at, c.pause, server.failure = at, firstPause, nil
			return nil
		}
		if err := ctx.Err(); err != nil {
			return &Error{Message: err.Error(), Kind: "DEADLINE_EXCEEDED", cause: err}
		}
		if !failure.Retry {
			return failure
		}
		c.last, server.failure = failure, failure
		server.pausedUntil = time.Now().Add(min(failure.RetryAfter, longestRetryAfter))
	}
	return c.unanswered("")
}

func (c *Client) get(ctx context.Context, header http.Header, server, path string, limit time.Duration) ([]byte, *Error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(c.closing, cancel)()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, server+path, nil)
	var response *http.Response
	var body []byte
	if err == nil {
		request.Header = header
		response, err = c.http.Do(request)
	}
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(response.Body, maxBody))
		response.Body.Close()
	}
	switch {
	case err != nil && errors.Is(limited.Err(), context.DeadlineExceeded):
		return nil, &Error{fmt.Sprintf("%s: no answer within %v", server, limit.Round(time.Millisecond)), "DEADLINE_EXCEEDED", 0, server, true, 0, err}
	case err != nil:
		cause := err
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			cause = wrapped.Err
		}
		return nil, &Error{server + ": " + cause.Error(), "UNAVAILABLE", 0, server, true, 0, err}
	case response.StatusCode == http.StatusOK:
		return body, nil
	}
	return nil, refusal(server, response, body)
}

func refusal(server string, response *http.Response, body []byte) *Error {
	var problem struct {
		Kind, Detail string
		Millis       *float64 `json:"retryAfterMs"`
	}
	status, seconds := response.StatusCode, 0.0
	if whole, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 20); err == nil {
		seconds = float64(whole)
	}
	message := fmt.Sprintf("%s: %d", server, status)
	if json.Unmarshal(body, &problem) == nil && problem.Kind != "" {
		detail := []rune(problem.Kind + ": " + problem.Detail)
		message += " " + strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, string(detail[:min(len(detail), 300)]))
		if problem.Millis != nil {
			seconds = *problem.Millis / 1000
		}
	}
	if problem.Kind == "" {
		message += ": not an answer of Vesta"
	}
	// Another server may have what this one, which is none of ours, has not.
	retry := status == 404 || status == 429 || status >= 500 || status >= 400 && problem.Kind == ""
	after := time.Duration(min(max(seconds, 0), 86400) * float64(time.Second))
	return &Error{message, problem.Kind, status, server, retry, after, nil}
}

// The last error, with what each server said. Runs with the lock held, as delay does.
func (c *Client) unanswered(start string) *Error {
	said, until := make([]string, len(c.servers)), c.servers[0].pausedUntil
	for i, server := range c.servers {
		said[i] = server.url + ": no answer yet"
		if server.failure != nil {
			said[i] = server.failure.Message
		}
		if server.pausedUntil.Before(until) {
			until = server.pausedUntil
		}
	}
	all := *c.last
	all.Message, all.Retry, all.RetryAfter, all.cause = start+strings.Join(said, "; "), true, max(time.Until(until), 0), c.last
	return &all
}

func sealed() *Error { return &Error{Message: "the client is closed", Kind: "SEALED"} }

// Waits for the channel, at most this long; an error if the context ends before.
func wait(ctx context.Context, changed <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-timer.C:
	}
	return nil
}
