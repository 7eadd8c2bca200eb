// Package vesta takes IDs ahead from vesta-rest. It needs only the standard library.
package vesta

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	maxCount          = 1_048_576 // IDs of one request
	maxBody           = 1 << 20
	firstPause        = 50 * time.Millisecond // between attempts while every server fails
	longestPause      = time.Second
	longestRetryAfter = 60 * time.Second
)

// Config has the options of a client. Only Servers is required.
type Config struct {
	Servers        []string      // 1 to 64 URLs, http://HOST:PORT or https://HOST:PORT, in order of preference
	Token          string        // bearer token
	Batch          int           // IDs in memory, 1 to 1,048,576; 0 means 10,000
	MaxWait        time.Duration // longest wait of a call, up to an hour; 0 means 2 s
	MaxAge         time.Duration // age at which IDs in memory are dropped; 0 means 60 s
	TLS            *tls.Config   // other authorities, or a client certificate
	AllowPlaintext bool          // sends the token without encryption to other hosts too
}

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

// Explained has the fields of an ID, its layout, and the moment at which its tick begins.
type Explained struct {
	ID        uint64    `json:"id,string"`
	Layout    string    `json:"layout"`
	Moment    time.Time `json:"moment"`
	Time      uint64    `json:"time"`
	Seq       uint64    `json:"seq"`
	Machine   uint64    `json:"machine"`
	GenMethod uint64    `json:"genMethod"`
	Type      uint64    `json:"type"`
	Version   uint64    `json:"version"`
}

// Parts of an ID to assemble. A nil field has the server's own value.
type Parts struct {
	Time, Seq                         uint64
	Machine, GenMethod, Type, Version *uint64
}

type server struct {
	url         string
	pausedUntil time.Time
	failure     *Error
}

type run struct {
	next, step uint64
	left       int
	expiry     time.Time
}

// Client takes IDs ahead from the first server that answers. It is safe for concurrent use.
type Client struct {
	config  Config
	attempt time.Duration
	http    *http.Client
	closing context.Context
	close   context.CancelFunc

	mu      sync.Mutex
	servers []server
	at      int // the server that answered last
	last    *Error
	pause   time.Duration
	runs    []run
	left    int
	awaited int
	filling bool
	failed  *Error
	nextTry time.Time
	changed chan struct{} // closed after each refill
}

var (
	serverURL = regexp.MustCompile(`^https?://[^/@?#\s]+(/[^@?#\s]*)?$`)
	loopback  = regexp.MustCompile(`^(localhost|127(\.\d+){3}|::1)$`)
	visible   = regexp.MustCompile(`^[!-~]*$`)
)

// New returns a client. Nothing is sent before its first call.
func New(config Config) (*Client, error) {
	if config.Batch == 0 {
		config.Batch = 10_000
	}
	if config.MaxWait == 0 {
		config.MaxWait = 2 * time.Second
	}
	if config.MaxAge == 0 {
		config.MaxAge = time.Minute
	}
	switch {
	case config.Batch < 1 || config.Batch > maxCount:
		return nil, fmt.Errorf("Batch must be 1 to %d, but is %d", maxCount, config.Batch)
	case config.MaxWait < time.Millisecond || config.MaxWait > time.Hour:
		return nil, fmt.Errorf("MaxWait must be 1ms to 1h, but is %v", config.MaxWait)
	case config.MaxAge < time.Millisecond:
		return nil, fmt.Errorf("MaxAge must be 1ms or more, but is %v", config.MaxAge)
	case len(config.Servers) < 1 || len(config.Servers) > 64:
		return nil, fmt.Errorf("the number of Servers must be 1 to 64, but is %d", len(config.Servers))
	case !visible.MatchString(config.Token):
		return nil, errors.New("the Token must be visible ASCII characters")
	}
	c := &Client{config: config, attempt: config.MaxWait, pause: firstPause, changed: make(chan struct{})}
	c.last = &Error{Kind: "DEADLINE_EXCEEDED"}
	for _, text := range config.Servers {
		parsed, err := url.Parse(text)
		if err != nil || !serverURL.MatchString(text) {
			return nil, errors.New("a server must be http://HOST:PORT or https://HOST:PORT, without user, query and fragment")
		}
		if config.Token != "" && parsed.Scheme == "http" && !config.AllowPlaintext && !loopback.MatchString(parsed.Hostname()) {
			return nil, fmt.Errorf("%s would get the token in plain text; use https:// or AllowPlaintext", text)
		}
		c.servers = append(c.servers, server{url: strings.TrimRight(text, "/")})
	}
	if len(c.servers) > 1 {
		c.attempt /= 2
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config.TLS
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &http.Client{Transport: transport, CheckRedirect: stay}
	c.closing, c.close = context.WithCancel(context.Background())
	return c, nil
}

// Next returns a new ID, from memory; if that is empty, it waits for a server.
func (c *Client) Next(ctx context.Context) (uint64, error) {
	c.mu.Lock()
	if c.left > c.config.Batch/2 && time.Now().Before(c.runs[0].expiry) {
		id := c.take()
		c.mu.Unlock()
		return id, nil
	}
	c.mu.Unlock()
	ids, err := c.NextN(ctx, 1)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// NextN returns n new IDs, 1 to 1,048,576: all or none.
func (c *Client) NextN(ctx context.Context, n int) ([]uint64, error) {
	if n < 1 || n > maxCount {
		return nil, fmt.Errorf("n must be 1 to %d, but is %d", maxCount, n)
	}
	deadline := time.Now().Add(c.config.MaxWait)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited += n
	defer func() { c.awaited -= n }()
	for {
		now := time.Now()
		if c.closing.Err() != nil {
			return nil, sealed()
		}
		for len(c.runs) > 0 && !now.Before(c.runs[0].expiry) {
			c.left -= c.runs[0].left
			c.runs = c.runs[1:]
		}
		if !c.filling && !now.Before(c.nextTry) && c.left-c.awaited <= c.config.Batch/2 {
			c.filling = true
			go c.fill(min(max(c.config.Batch-c.left, c.awaited), maxCount))
		}
		if c.left >= n {
			ids := make([]uint64, n)
			for i := range ids {
				ids[i] = c.take()
			}
			return ids, nil
		}
		if failed := c.failed; !c.filling && failed != nil && (!failed.Retry || !c.nextTry.Before(deadline)) {
			return nil, failed
		}
		if !now.Before(deadline) {
			return nil, c.unanswered(fmt.Sprintf("no ID within %v: ", c.config.MaxWait))
		}
		until := deadline
		if !c.filling && c.nextTry.Before(deadline) {
			until = c.nextTry
		}
		changed := c.changed
		c.mu.Unlock()
		err := wait(ctx, changed, until.Sub(now))
		c.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
}

// Explain returns the fields of an ID, by the server's layout.
func (c *Client) Explain(ctx context.Context, id uint64) (Explained, error) {
	var it Explained
	err := c.call(ctx, fmt.Sprintf("/v1/ids/%d", id), func(body []byte) error { return json.Unmarshal(body, &it) })
	return it, err
}

// Make returns an ID assembled from its fields, for tests and repairs: it is not a new one.
func (c *Client) Make(ctx context.Context, parts Parts) (id uint64, err error) {
	path := fmt.Sprintf("/makeid?time=%d&seq=%d", parts.Time, parts.Seq)
	for name, value := range map[string]*uint64{"machine": parts.Machine, "genMethod": parts.GenMethod, "type": parts.Type, "version": parts.Version} {
		if value != nil {
			path += fmt.Sprintf("&%s=%d", name, *value)
		}
	}
	err = c.call(ctx, path, func(body []byte) (err error) {
		id, err = strconv.ParseUint(strings.TrimSpace(string(body)), 10, 64)
		return err
	})
	return id, err
}

// TransTime returns the moment at which a tick of the server's layout begins.
func (c *Client) TransTime(ctx context.Context, ticks uint64) (moment time.Time, err error) {
	err = c.call(ctx, fmt.Sprintf("/transtime?time=%d", ticks), func(body []byte) (err error) {
		moment, err = time.Parse(time.RFC3339, strings.TrimSpace(string(body)))
		return err
	})
	return moment, err
}

// Close drops the IDs in memory. Calls in progress and later ones fail with the kind SEALED.
func (c *Client) Close() error {
	c.close()
	c.mu.Lock()
	c.runs, c.left = nil, 0
	c.wake()
	c.mu.Unlock()
	c.http.CloseIdleConnections()
	return nil
}

// The methods below take() to unanswered() run with the lock held.

func (c *Client) take() uint64 {
	run := &c.runs[0]
	id := run.next
	run.next += run.step
	c.left--
	if run.left--; run.left == 0 {
		c.runs = c.runs[1:]
	}
	return id
}

func (c *Client) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// The last error, with what each server said.
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

func (c *Client) fill(count int) {
	expiry := time.Now().Add(c.config.MaxAge)
	var runs []run
	err := c.ask(c.closing, fmt.Sprintf("/v1/runs?count=%d", count), time.Time{}, func(body []byte) (err error) {
		runs, err = parseRuns(body, count, expiry)
		return err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filling, c.failed = false, err
	if err != nil {
		c.nextTry = time.Now().Add(c.delay(err))
	} else if c.closing.Err() == nil {
		c.runs = append(c.runs, runs...)
		c.left += count
	}
	c.wake()
}

func (c *Client) call(ctx context.Context, path string, read func([]byte) error) error {
	deadline := time.Now().Add(c.config.MaxWait)
	for {
		err := c.ask(ctx, path, deadline, read)
		if err == nil {
			return nil
		}
		c.mu.Lock()
		delay := c.delay(err)
		c.mu.Unlock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !err.Retry || time.Now().Add(delay).After(deadline) {
			return err
		}
		if err := wait(ctx, c.closing.Done(), delay); err != nil {
			return err
		}
	}
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
func (c *Client) ask(ctx context.Context, path string, deadline time.Time, read func([]byte) error) *Error {
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
		body, failure := c.get(ctx, server.url, path, limit)
		if failure == nil {
			if err := read(body); err != nil {
				failure = &Error{server.url + ": not an answer of vesta-rest: " + err.Error(), "INTERNAL", 200, server.url, true, 0, err}
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

func (c *Client) get(ctx context.Context, server, path string, limit time.Duration) ([]byte, *Error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(c.closing, cancel)()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, server+path, nil)
	if err == nil && c.config.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	var response *http.Response
	var body []byte
	if err == nil {
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
		Millis       *float64 `json:"retry_after_ms"`
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
	after := time.Duration(min(max(seconds, 0), 86400) * float64(time.Second))
	return &Error{message, problem.Kind, status, server, status == 429 || status >= 500, after, nil}
}

func parseRuns(body []byte, count int, expiry time.Time) ([]run, error) {
	var answer struct {
		Runs []struct {
			First uint64 `json:"first,string"`
			Step  uint64 `json:"step,string"`
			Count int    `json:"count"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	runs, total := []run{}, 0
	for _, it := range answer.Runs {
		if it.Count < 1 || it.Count > count || it.Step < 1 || it.Count > 1 && it.Step > (math.MaxUint64-it.First)/uint64(it.Count-1) {
			return nil, errors.New("a run is out of range")
		}
		total += it.Count
		runs = append(runs, run{it.First, it.Step, it.Count, expiry})
	}
	if total != count {
		return nil, fmt.Errorf("expected runs of %d IDs", count)
	}
	return runs, nil
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
