package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// portCodec sends bytes as they are.
type portCodec struct{}

func (portCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (portCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (portCodec) Name() string                       { return "proto" }

// runEtcdPort: bad input on the port of vedette etcd: each is answered or cut, memory stays bounded, and a healthy client beside it does not notice.
func runEtcdPort(args []string) int {
	flags, verbose, _ := newFlags("etcd-port")
	program := flags.String("program", "", "the vedette to start")
	halfOpen := flags.Int("half-open", 2000, "connections that say nothing")
	_ = flags.Parse(args)
	if *program == "" {
		fmt.Fprintln(os.Stderr, "usage: peers etcd-port --program VEDETTE [--half-open N]")
		return 2
	}
	r := newReport("etcd-port")
	server, err := startServer(*program, "etcd", "--listen", "127.0.0.1:0", "--memory")
	if err == nil {
		_, err = server.awaitReady(ownPatience)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-port:", err)
		return 1
	}
	healthy, err := dialSide("healthy", server.url)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-port:", err)
		return 1
	}
	load := &etcdLoad{pid: server.command.Process.Pid}
	limit := int64(640 << 10)
	if os.Getenv("VEDETTE_SANITIZED") != "" {
		limit *= 4 // a sanitizer's shadow and what it does not give back
	}
	check := func(after string) {
		started := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), ownPatience)
		defer cancel()
		_, err := healthy.kv.Put(ctx, &pb.PutRequest{Key: []byte("healthy"), Value: []byte(after)})
		if err == nil {
			_, err = healthy.kv.Range(ctx, &pb.RangeRequest{Key: []byte("healthy")})
		}
		took := time.Since(started)
		_, rss := load.usage()
		if *verbose {
			fmt.Fprintf(os.Stderr, "%s: %v, %d MiB\n", after, took, rss>>10)
		}
		r.check(err == nil, "bad-input", "after %s a healthy client was answered %v in %v", after, err, took)
		r.check(int64(rss) < limit, "bad-input", "after %s the server has %d MiB", after, rss>>10)
	}
	check("nothing")

	// Bytes that are no HTTP/2, or are HTTP/1.x, before and after the preface.
	garbage := make([]byte, 1<<20)
	_, _ = rand.Read(garbage)
	var settings bytes.Buffer
	_ = http2.NewFramer(&settings, nil).WriteSettings()
	for name, bytes := range map[string][]byte{
		"garbage":                    garbage,
		"HTTP/1.1":                   []byte("GET /health HTTP/1.1\r\nHost: x\r\n\r\n"),
		"garbage behind the preface": append([]byte(http2.ClientPreface), garbage...),
		"garbage behind settings":    append(append([]byte(http2.ClientPreface), settings.Bytes()...), garbage...),
		"half a preface":             []byte(http2.ClientPreface)[:10],
	} {
		connection, err := net.Dial("tcp", server.url)
		if err != nil {
			r.violation("bad-input", "%s: %v", name, err)
			continue
		}
		_ = connection.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = connection.Write(bytes)
		_, _ = io.Copy(io.Discard, connection)
		connection.Close()
		check(name)
	}

	// Requests of HTTP/1.x that are answered, malformed, without end, or never complete, and many that nobody reads an answer of.
	for name, bytes := range map[string][]byte{
		"10000 requests in one piece":  []byte(strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 10000)),
		"a head of 1 MiB":              []byte("GET /health HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 1<<20) + "\r\n\r\n"),
		"a first line of 1 MiB":        []byte("GET /" + strings.Repeat("a", 1<<20)),
		"a head without its end":       []byte("GET /health HTTP/1.1\r\nHost: x\r\n"),
		"a body of 1 GiB":              append([]byte("POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n"), garbage...),
		"chunks that are none":         append([]byte("POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"), garbage...),
		"garbage behind a request":     append([]byte("GET /health HTTP/1.1\r\nHost: x\r\n\r\n"), garbage...),
		"the preface behind a request": []byte("GET /health HTTP/1.1\r\nHost: x\r\n\r\n" + http2.ClientPreface),
	} {
		var unread []net.Conn
		for i := 0; i < 20; i++ {
			if connection, err := net.Dial("tcp", server.url); err == nil {
				_ = connection.SetDeadline(time.Now().Add(500 * time.Millisecond))
				_, _ = connection.Write(bytes)
				unread = append(unread, connection)
			}
		}
		check(name)
		for _, connection := range unread {
			connection.Close()
		}
		check(name + ", closed")
	}

	// Connections that say nothing.
	var open []net.Conn
	for i := 0; i < *halfOpen; i++ {
		if connection, err := net.Dial("tcp", server.url); err == nil {
			open = append(open, connection)
		}
	}
	check(fmt.Sprintf("%d half-open connections", len(open)))
	for _, connection := range open {
		connection.Close()
	}

	// Messages that are none, nest without end, or are too large.
	raw := func(method string, message []byte) error {
		ctx, cancel := context.WithTimeout(context.Background(), ownPatience)
		defer cancel()
		var answer []byte
		return healthy.connection.Invoke(ctx, method, &message, &answer, grpcForceRaw())
	}
	nested := []byte{}
	for level := 0; level < 5000 && len(nested) < 1<<20; level++ {
		inner := appendField(nil, 4, nested)
		nested = appendField(nil, 2, inner)
	}
	for _, c := range []struct {
		name    string
		method  string
		message []byte
		code    codes.Code
	}{
		{"a message that is none", "/etcdserverpb.KV/Range", []byte{0xff, 0xff, 0xff}, codes.Internal},
		{"a transaction of 5000 levels", "/etcdserverpb.KV/Txn", nested, codes.InvalidArgument},
		{"a message beyond the limit", "/etcdserverpb.KV/Put", make([]byte, 3<<20), codes.ResourceExhausted},
		{"an unknown method", "/etcdserverpb.KV/Nothing", nil, codes.Unimplemented},
		{"an unknown service", "/x.Y/Z", nil, codes.Unimplemented},
	} {
		err := raw(c.method, c.message)
		r.check(status.Code(err) == c.code, "bad-input", "%s: %v", c.name, err)
		check(c.name)
	}

	for method, isStream := range portMethods() {
		for name, message := range portMalformed() {
			err := sendMalformed(healthy, method, isStream, message)
			code := status.Code(err)
			lost := code == codes.Unavailable && !strings.HasPrefix(status.Convert(err).Message(), "etcdserver: ")
			r.check(code != codes.DeadlineExceeded && !lost, "bad-input", "%s to %s: %v", name, method, err)
		}
	}
	check("malformed messages to every method")

	// Frames that are too many, and calls and streams that do not end.
	for name, flood := range portFloods() {
		if p, err := dialPortRaw(server.url); err != nil {
			r.violation("bad-input", "%s: %v", name, err)
		} else {
			flood(p)
			check(name)
			p.connection.Close()
		}
	}
	release := portUnfinished(server.url, 30, 1<<20)
	check("30 messages that do not end")
	release()
	idle, err := dialSide("idle", server.url)
	if err == nil {
		ctx, cancel := context.WithCancel(context.Background())
		opened := 0
		for i := 0; i < 1000; i++ {
			if stream, err := idle.watch.Watch(ctx); err == nil && stream.Send(creating(&pb.WatchCreateRequest{Key: []byte("nothing")})) == nil {
				opened++
			}
			if stream, err := idle.lease.LeaseKeepAlive(ctx); err == nil && i%2 == 0 && stream.Send(&pb.LeaseKeepAliveRequest{ID: 5}) == nil {
				opened++
			}
		}
		r.check(opened == 1500, "bad-input", "%d streams of 1500", opened)
		check("2000 streams that do not end")
		cancel()
		idle.connection.Close()
	}

	// Watch streams that never read, while everything they watch is written again and again.
	var cancels []context.CancelFunc
	stuck, err := dialSide("stuck", server.url)
	if err == nil {
		for i := 0; i < 20; i++ {
			ctx, cancel := context.WithCancel(context.Background())
			cancels = append(cancels, cancel)
			stream, err := stuck.watch.Watch(ctx)
			if err != nil {
				r.violation("bad-input", "a stream: %v", err)
				continue
			}
			for n := 0; n < 50; n++ {
				_ = stream.Send(creating(&pb.WatchCreateRequest{Key: []byte("stuck"), PrevKv: true}))
			}
		}
	}
	value := make([]byte, 100<<10)
	var group sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 150; i++ {
				ctx, cancel := context.WithTimeout(context.Background(), ownPatience)
				_, err := healthy.kv.Put(ctx, &pb.PutRequest{Key: []byte("stuck"), Value: value})
				cancel()
				if err != nil {
					r.violation("bad-input", "put beside stuck streams: %v", err)
					return
				}
			}
		}()
	}
	group.Wait()
	check("1000 stuck watchers and 60 MB of events")
	for _, cancel := range cancels {
		cancel()
	}
	// A lease stream that sends without reading.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	if stream, err := stuck.lease.LeaseKeepAlive(ctx); err == nil {
		for ctx.Err() == nil {
			if stream.Send(&pb.LeaseKeepAliveRequest{ID: 1}) != nil {
				break
			}
		}
	}
	cancel()
	check("a stream of requests whose answers nobody reads")
	if err := server.terminate(); err != nil {
		r.violation("bad-input", "%v", err)
	}
	return r.finish()
}

func appendField(to []byte, field byte, body []byte) []byte {
	to = append(to, field<<3|2)
	size := len(body)
	for ; size >= 0x80; size >>= 7 {
		to = append(to, byte(size)|0x80)
	}
	return append(append(to, byte(size)), body...)
}

func grpcForceRaw() grpc.CallOption { return grpc.ForceCodec(portCodec{}) }
