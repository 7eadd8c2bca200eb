// Package vesta takes IDs ahead from Vesta over REST. It needs only the standard library.
package vesta

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxCount = 1_048_576        // IDs of one request
	often    = 10 * time.Second // a refill that soon after the last one asks for twice as many
)

// Config has the options of a client. Only Servers is required.
type Config struct {
	Servers []string      // 1 to 64 URLs, http://HOST:PORT or https://HOST:PORT, in order of preference
	Token   string        // bearer token
	Batch   int           // most IDs in memory, 1 to 1,048,576; 0 means 10,000
	MaxWait time.Duration // longest wait of a call, up to an hour; 0 means 2 s
	MaxAge  time.Duration // age at which IDs in memory are dropped; 0 means 60 s
	// More headers of a request, such as traceparent, by the context of the call that sends it
	Headers        func(context.Context) http.Header
	TLS            *tls.Config // other authorities, or a client certificate
	AllowPlaintext bool        // sends the token without encryption to other hosts too
}

// String leaves out the token.
func (c Config) String() string { return strings.Join(c.Servers, ",") }

// Explained has the fields of an ID, its layout, and the moment at which its tick begins.
type Explained struct {
	ID        uint64
	Layout    string
	Moment    time.Time
	Time      uint64
	Seq       uint64
	Machine   uint64
	GenMethod uint64
	Type      uint64
	Version   uint64
}

// Parts of an ID to assemble. A nil field has the server's own value.
type Parts struct {
	Time, Seq                         uint64
	Machine, GenMethod, Type, Version *uint64
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
	goal    int       // IDs to have in memory
	filled  time.Time // when a refill ended
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
	c := &Client{config: config, attempt: config.MaxWait, pause: firstPause, goal: 1, changed: make(chan struct{})}
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

// String leaves out the token.
func (c *Client) String() string { return "vesta.Client " + c.config.String() }

// Next returns a new ID, from memory; if that is empty, it waits for a server.
func (c *Client) Next(ctx context.Context) (uint64, error) {
	c.mu.Lock()
	if c.left > c.goal/2 && time.Now().Before(c.runs[0].expiry) {
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
			c.goal = max(c.goal-c.runs[0].left, 1)
			c.runs = c.runs[1:]
		}
		if !c.filling && !now.Before(c.nextTry) && c.left-c.awaited < c.goal/2 {
			goal := c.goal
			if now.Sub(c.filled) < often {
				goal = min(2*goal, c.config.Batch)
			}
			c.filling = true
			go c.fill(ctx, min(max(goal-c.left, c.awaited), maxCount), goal)
		}
		if c.left >= n {
			ids := make([]uint64, n)
			for i := range ids {
				ids[i] = c.take()
			}
			return ids, nil
		}
		if failed := c.failed; !c.filling && failed != nil && (!failed.Retry || !c.nextTry.Before(deadline)) {
			if failed.Retry {
				failed = c.unanswered("")
			}
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
	err := c.call(ctx, fmt.Sprintf("/v1/ids/%d", id), func(body []byte, _ string) error {
		var text string
		answer, err := parse(body)
		err = errors.Join(err, answer.read("id", &text), answer.read("layout", &it.Layout), answer.read("moment", &it.Moment),
			answer.read("time", &it.Time), answer.read("seq", &it.Seq), answer.read("machine", &it.Machine),
			answer.read("genMethod", &it.GenMethod), answer.read("type", &it.Type), answer.read("version", &it.Version))
		if it.ID = id; err == nil && text != strconv.FormatUint(id, 10) {
			return errMistaken
		}
		return err
	})
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
	err = c.call(ctx, path+"&once=", func(body []byte, once string) error {
		text, name, _ := strings.Cut(strings.TrimSpace(string(body)), " ")
		if id, err = strconv.ParseUint(text, 10, 64); err == nil && name != once {
			return errMistaken
		}
		return err
	})
	return id, err
}

// TransTime returns the moment at which a tick of the server's layout begins.
func (c *Client) TransTime(ctx context.Context, ticks uint64) (moment time.Time, err error) {
	err = c.call(ctx, fmt.Sprintf("/transtime?time=%d&once=", ticks), func(body []byte, once string) error {
		text, name, _ := strings.Cut(strings.TrimSpace(string(body)), " ")
		if moment, err = time.Parse(time.RFC3339, text); err == nil && name != once {
			return errMistaken
		}
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

// take and wake run with the lock held.

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

// Ends with the client, not with the context of the call that started it.
func (c *Client) fill(caller context.Context, count, goal int) {
	expiry := time.Now().Add(c.config.MaxAge)
	var runs []run
	err := c.ask(c.closing, c.header(caller), fmt.Sprintf("/v1/runs?count=%d&once=", count), time.Time{}, func(body []byte, once string) (err error) {
		runs, err = parseRuns(body, once, count, expiry)
		return err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filling, c.failed = false, err
	if err != nil {
		c.nextTry = time.Now().Add(c.delay(err))
	} else if c.closing.Err() == nil {
		c.goal, c.filled = goal, time.Now()
		c.runs = append(c.runs, runs...)
		c.left += count
	}
	c.wake()
}

func parseRuns(body []byte, once string, count int, expiry time.Time) ([]run, error) {
	var list []members
	var name string
	answer, err := parse(body)
	if err = errors.Join(err, answer.read("runs", &list)); err != nil {
		return nil, err
	}
	if answer.read("once", &name) != nil || name != once {
		return nil, errMistaken
	}
	runs, open, total := []run{}, []run{}, 0 // open: runs that reach beyond the first ID of the next one
	for _, it := range list {
		var first, step string
		var n int
		err := errors.Join(it.read("first", &first), it.read("step", &step), it.read("count", &n))
		next, bad := strconv.ParseUint(first, 10, 64)
		by, worse := strconv.ParseUint(step, 10, 64)
		if err = errors.Join(err, bad, worse); err != nil {
			return nil, err
		}
		if n < 1 || n > count || by < 1 || n > 1 && by > (math.MaxUint64-next)/uint64(n-1) {
			return nil, errors.New("a run is out of range")
		}
		fresh := run{next, by, n, expiry}
		open = slices.DeleteFunc(open, func(it run) bool { return it.next+it.step*uint64(it.left-1) < next })
		meets := func(it run) bool { return it.step != by || (next-it.next)%by == 0 }
		if len(runs) > 0 && next <= runs[len(runs)-1].next || slices.ContainsFunc(open, meets) {
			return nil, errors.New("runs share an ID")
		}
		total += n
		runs, open = append(runs, fresh), append(open, fresh)
	}
	if total != count {
		return nil, fmt.Errorf("expected runs of %d IDs", count)
	}
	return runs, nil
}
