// Runs the commands of its input with the Go client: see run.py.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	vesta "github.com/vesta-id/vesta/clients/go"
)

var (
	client *vesta.Client
	config vesta.Config
	begun  = make(chan string, 1)
	ctx    = context.Background()
)

type traceKey struct{}

// A token among them has no effect.
func headers(ctx context.Context) http.Header {
	if trace, found := ctx.Value(traceKey{}).(string); found {
		return http.Header{"Traceparent": {trace}, "Authorization": {"Bearer other"}}
	}
	return nil
}

func main() {
	log.SetOutput(io.Discard) // net/http tells of each answer that nobody asked for
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		words := strings.Fields(input.Text())
		pairs := map[string]string{}
		for _, word := range words {
			if name, value, found := strings.Cut(word, "="); found {
				pairs[name] = value
			}
		}
		if words[0] == "end" {
			fmt.Println(<-begun)
			continue
		}
		fmt.Println(guarded(func() (string, error) { return answer(words, pairs) }))
	}
}

func guarded(work func() (string, error)) string {
	text, err := work()
	var failed *vesta.Error
	switch {
	case err == nil:
		return "ok " + text
	case errors.As(err, &failed):
		retry := 0
		if failed.Retry {
			retry = 1
		}
		dash := func(text string) string {
			if text == "" {
				return "-"
			}
			return text
		}
		return fmt.Sprintf("error %s %d %d %d %s %s", dash(failed.Kind), failed.Status, retry, failed.RetryAfter.Milliseconds(), dash(failed.Server), failed)
	}
	return "refused " + err.Error()
}

func text(ids []uint64) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.FormatUint(id, 10)
	}
	return strings.Join(words, " ")
}

func number(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}

func answer(words []string, pairs map[string]string) (string, error) {
	switch words[0] {
	case "new":
		config = vesta.Config{
			Servers: strings.Split(pairs["servers"], ","), Token: pairs["token"], Headers: headers, Batch: int(number(pairs["batch"])),
			MaxWait: time.Duration(number(pairs["max_wait"])) * time.Millisecond,
			MaxAge:  time.Duration(number(pairs["max_age"])) * time.Millisecond,
		}
		if path, found := pairs["ca"]; found {
			pem, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(pem)
			config.TLS = &tls.Config{RootCAs: roots}
		}
		made, err := vesta.New(config)
		client = made
		return fmt.Sprintf("%+v %+v", made, config), err
	case "take":
		ids := make([]uint64, number(words[1]))
		for i := range ids {
			id, err := client.Next(ctx)
			if err != nil {
				return "", err
			}
			ids[i] = id
		}
		return text(ids), nil
	case "many":
		ids, err := client.NextN(ctx, int(number(words[1])))
		return text(ids), err
	case "explain":
		it, err := client.Explain(ctx, number(words[1]))
		return text([]uint64{it.Time, it.Seq, it.Machine, it.GenMethod, it.Type, it.Version}), err
	case "make":
		part := func(name string) *uint64 {
			if value, found := pairs[name]; found {
				n := number(value)
				return &n
			}
			return nil
		}
		id, err := client.Make(ctx, vesta.Parts{
			Time: number(pairs["time"]), Seq: number(pairs["seq"]), Machine: part("machine"), GenMethod: part("genMethod"),
			Type: part("type"), Version: part("version"),
		})
		return text([]uint64{id}), err
	case "trans":
		moment, err := client.TransTime(ctx, number(words[1]))
		return strconv.FormatInt(moment.UnixMilli(), 10), err
	case "encode":
		return vesta.Encode(number(pairs["id"]), pairs["format"])
	case "decode":
		id, err := vesta.Decode(pairs["text"], pairs["format"])
		return text([]uint64{id}), err
	case "traced":
		ctx = context.WithValue(ctx, traceKey{}, words[1])
		defer func() { ctx = context.Background() }()
		return answer(words[2:], pairs)
	case "begin":
		go func() {
			begun <- guarded(func() (string, error) {
				id, err := client.Next(ctx)
				return text([]uint64{id}), err
			})
		}()
		return "", nil
	case "close":
		if client == nil {
			return "", nil
		}
		return "", client.Close()
	case "short", "closed":
		return used(int(number(words[1])), words[0] == "short")
	case "run":
		return "", run(int(number(words[1])), int(number(words[2])), words[3])
	case "bench":
		seconds, _ := strconv.ParseFloat(words[1], 64)
		if _, err := client.Next(ctx); err != nil {
			return "", err
		}
		start, n := time.Now(), 0
		for ; time.Since(start).Seconds() < seconds; n += 1000 {
			for range 1000 {
				if _, err := client.Next(ctx); err != nil {
					return "", err
				}
			}
		}
		return fmt.Sprint(n, " ", time.Since(start).Microseconds()), nil
	}
	return "", errors.New("unknown command " + words[0])
}

// An ID of each of so many clients, at once or in turn.
func used(count int, together bool) (string, error) {
	ids, failures := make([]uint64, count), make([]error, count)
	var users sync.WaitGroup
	for nth := range ids {
		use := func() {
			defer users.Done()
			it, err := vesta.New(config)
			if err == nil {
				ids[nth], err = it.Next(ctx)
				it.Close()
			}
			failures[nth] = err
		}
		if users.Add(1); together {
			go use()
		} else {
			use()
		}
	}
	users.Wait()
	for _, err := range failures {
		if err != nil {
			return "", err
		}
	}
	return text(ids), nil
}

func run(threads, count int, path string) error {
	lots, failures := make([][]uint64, threads), make([]error, threads)
	var workers sync.WaitGroup
	for nth := range lots {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for len(lots[nth]) < count/threads {
				id, err := client.Next(ctx)
				if err != nil {
					failures[nth] = err
					return
				}
				lots[nth] = append(lots[nth], id)
				if nth == 0 && len(lots[nth])%5000 == 0 {
					fmt.Println("at", len(lots[nth]))
				}
			}
		}()
	}
	workers.Wait()
	var all strings.Builder
	for _, ids := range lots {
		for _, id := range ids {
			fmt.Fprintln(&all, id)
		}
	}
	return errors.Join(append(failures, os.WriteFile(path, []byte(all.String()), 0o600))...)
}
