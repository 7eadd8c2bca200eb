package vesta_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	vesta "github.com/vesta-id/vesta/clients/go"
)

// A server whose first ID is 2407837855670862845.
func server() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		if trace := request.Header.Get("Traceparent"); trace != "" {
			fmt.Println("trace", trace)
		}
		fmt.Fprintf(answer, `{"runs":[{"first":"2407837855670862845","step":"1024","count":%s}],"once":%q}`, query.Get("count"), query.Get("once"))
	}))
}

func Example() {
	server := server() // http://10.0.0.7:8088, for instance
	defer server.Close()

	ids, err := vesta.New(vesta.Config{Servers: []string{server.URL}})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	id, err := ids.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id)
	// Output: 2407837855670862845
}

// A request carries the trace of the call that sends it.
func ExampleConfig() {
	server := server()
	defer server.Close()

	type trace struct{} // of your tracing library
	ids, err := vesta.New(vesta.Config{
		Servers: []string{server.URL},
		Headers: func(ctx context.Context) http.Header {
			return http.Header{"Traceparent": {ctx.Value(trace{}).(string)}}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	ctx := context.WithValue(context.Background(), trace{}, "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")
	if _, err := ids.NextN(ctx, 3); err != nil {
		log.Fatal(err)
	}
	// Output: trace 00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01
}

func ExampleEncode() {
	text, _ := vesta.Encode(2407837855670862845, "base62")
	id, err := vesta.Decode(text, "base62")
	fmt.Println(text, id, err)

	_, err = vesta.Decode("13NQK8N001A08M", "crockford-check")
	fmt.Println(err)
	// Output:
	// 2rrvDihMXHR 2407837855670862845 <nil>
	// the check symbol of crockford-check is wrong: a character was mistyped, swapped, lost or added
}
