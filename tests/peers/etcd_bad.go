package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// badServer listens where an etcd should, and is none.
//
//	silent             accepts, and says nothing
//	close              closes every connection at once
//	http1              an HTTP/1 server
//	garbage            answers with bytes that mean nothing
//	text               a service of another kind that greets (SSH)
//	settings-only      speaks HTTP/2, takes calls, and never answers one
//	no-window          speaks HTTP/2 and never lets the client send the body of a call
//	goaway             speaks HTTP/2 and sends every call away
//	reset              resets every call
//	no-grpc            answers calls like a web server: status 200, text/html
//	http-503           answers calls like a load balancer without servers: status 503
//	endless-headers    answers a call with headers that do not end
//	endless-trailers   answers with a message, then with trailers that do not end
//	huge-header        answers with one header value of 32 MiB
//	huge-length        a message whose length says 4 GiB - 1
//	short-message      ends the call in the middle of a message
//	compressed         a message that says it is compressed, and names no method
//	not-protobuf       a message that is no protobuf
//	no-status          ends the call without a grpc-status
//	odd-status         grpc-status is a word
//	big-status         grpc-status 99999999999
//	two-answers        two messages where one is wanted
//	endless-data       a message that begins well and goes on for ever, below its announced 1 GiB
//	ping-flood         sends pings without a pause
//	settings-flood     sends settings without a pause
type badServer struct {
	kind        string
	listener    net.Listener
	connections atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool
}

var badKinds = []string{"silent", "close", "http1", "garbage", "text", "settings-only", "no-window", "goaway", "reset", "no-grpc", "http-503",
	"endless-headers", "endless-trailers", "huge-header", "huge-length", "short-message", "compressed", "not-protobuf", "no-status", "odd-status", "big-status",
	"two-answers", "endless-data", "ping-flood", "settings-flood"}

func startBadServer(kind string) (*badServer, error) {
	if !strings.Contains(" "+strings.Join(badKinds, " ")+" ", " "+kind+" ") {
		return nil, fmt.Errorf("no kind %q; there are %s", kind, strings.Join(badKinds, ", "))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &badServer{kind: kind, listener: listener, conns: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			s.mu.Lock()
			s.conns[conn] = true
			s.mu.Unlock()
			go func() {
				s.serve(conn)
				conn.Close()
				s.mu.Lock()
				delete(s.conns, conn)
				s.mu.Unlock()
			}()
		}
	}()
	return s, nil
}

func (s *badServer) address() string { return s.listener.Addr().String() }

func (s *badServer) close() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		conn.Close()
	}
}

func (s *badServer) serve(conn net.Conn) {
	switch s.kind {
	case "close":
	case "silent":
		_, _ = io.Copy(io.Discard, conn)
	case "http1":
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 11\r\nConnection: close\r\n\r\nBad Request")
	case "garbage":
		piece := bytes.Repeat([]byte{0xfe, 0x01, 0x80, 0x55, 0xaa}, 4096)
		for range 64 {
			if _, err := conn.Write(piece); err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, conn)
	case "text":
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n")
		_, _ = io.Copy(io.Discard, conn)
	default:
		s.serveHTTP2(conn)
	}
}

// serveHTTP2 answers every call in the wrong way of its kind.
func (s *badServer) serveHTTP2(conn net.Conn) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.MaxHeaderListSize = 1 << 20
	var settings []http2.Setting
	if s.kind == "no-window" {
		settings = append(settings, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	}
	if framer.WriteSettings(settings...) != nil {
		return
	}
	var writing sync.Mutex // one frame at a time
	write := func(frame func() error) error {
		writing.Lock()
		defer writing.Unlock()
		return frame()
	}
	switch s.kind {
	case "ping-flood":
		go func() {
			for write(func() error { return framer.WritePing(false, [8]byte{1}) }) == nil {
			}
		}()
	case "settings-flood":
		go func() {
			for write(func() error { return framer.WriteSettings() }) == nil {
			}
		}()
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = write(framer.WriteSettingsAck)
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				_ = write(func() error { return framer.WritePing(true, frame.Data) })
			}
		case *http2.MetaHeadersFrame:
			go func(stream uint32) {
				_ = write(func() error { return s.answer(conn, framer, stream) })
			}(frame.StreamID)
		}
	}
}

func headerBlock(pairs ...string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i+1 < len(pairs); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1], Sensitive: true})
	}
	return block.Bytes()
}

// framed puts gRPC's five bytes before a message: the flag, and the length.
func framed(flag byte, length uint32, message []byte) []byte {
	out := append([]byte{flag}, binary.BigEndian.AppendUint32(nil, length)...)
	return append(out, message...)
}

func (s *badServer) answer(conn net.Conn, framer *http2.Framer, stream uint32) error {
	headers := func(end bool, pairs ...string) error {
		return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(pairs...), EndStream: end, EndHeaders: true})
	}
	begin := func() error { return headers(false, ":status", "200", "content-type", "application/grpc") }
	finish := func() error { return headers(true, "grpc-status", "0") }
	// A message as one call after the other wants; empty is a valid answer to all of them.
	data := func(bytes []byte) error {
		if err := begin(); err != nil {
			return err
		}
		return framer.WriteData(stream, false, bytes)
	}
	switch s.kind {
	case "settings-only", "no-window", "ping-flood", "settings-flood":
		return nil
	case "goaway":
		return framer.WriteGoAway(0, http2.ErrCodeNo, nil)
	case "reset":
		return framer.WriteRSTStream(stream, http2.ErrCodeInternal)
	case "no-grpc":
		if err := headers(false, ":status", "200", "content-type", "text/html"); err != nil {
			return err
		}
		return framer.WriteData(stream, true, []byte("<html><body>It works!</body></html>"))
	case "http-503":
		return headers(true, ":status", "503", "content-type", "text/plain")
	case "endless-headers", "endless-trailers":
		if s.kind == "endless-trailers" {
			if err := data(framed(0, 0, nil)); err != nil {
				return err
			}
			if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock("grpc-status", "0"), EndStream: true}); err != nil {
				return err
			}
		} else if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status", "200")}); err != nil {
			return err
		}
		block := headerBlock("x-more", strings.Repeat("and more ", 1000))
		for range 1 << 20 {
			_ = conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
			if err := framer.WriteContinuation(stream, false, block); err != nil {
				return err
			}
		}
		return nil
	case "huge-header":
		block := headerBlock(":status", "200", "content-type", "application/grpc", "x-huge", strings.Repeat("x", 32<<20))
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block[:16000]}); err != nil {
			return err
		}
		for rest := block[16000:]; ; {
			n := min(len(rest), 16000)
			if err := framer.WriteContinuation(stream, n == len(rest), rest[:n]); err != nil || n == len(rest) {
				return err
			}
			rest = rest[n:]
		}
	case "huge-length":
		return data(framed(0, 0xffffffff, []byte("x")))
	case "short-message":
		if err := data(framed(0, 100, []byte("only this"))); err != nil {
			return err
		}
		return finish()
	case "compressed":
		if err := data(framed(1, 4, []byte{1, 2, 3, 4})); err != nil {
			return err
		}
		return finish()
	case "not-protobuf":
		if err := data(framed(0, 6, []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})); err != nil {
			return err
		}
		return finish()
	case "no-status":
		if err := data(framed(0, 0, nil)); err != nil {
			return err
		}
		return headers(true, "x-nothing", "to see")
	case "odd-status":
		if err := begin(); err != nil {
			return err
		}
		return headers(true, "grpc-status", "fine", "grpc-message", "%zz%")
	case "big-status":
		if err := begin(); err != nil {
			return err
		}
		return headers(true, "grpc-status", "99999999999", "grpc-message", strings.Repeat("%41", 1000))
	case "two-answers":
		if err := data(append(framed(0, 0, nil), framed(0, 0, nil)...)); err != nil {
			return err
		}
		return finish()
	case "endless-data":
		if err := data(framed(0, 1<<30, nil)); err != nil {
			return err
		}
		piece := make([]byte, 16000)
		for range (1 << 30) / len(piece) {
			_ = conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
			// Whatever the client's window says: it may not keep what it did not allow.
			if err := framer.WriteData(stream, false, piece); err != nil {
				return err
			}
		}
	}
	return nil
}

// bigMessage is a RangeResponse, or a WatchResponse of watch 0, with count keys and values of that size.
func bigMessage(method string, count, size int) (proto.Message, error) {
	header := &etcdserverpb.ResponseHeader{Revision: 100}
	value := bytes.Repeat([]byte{'x'}, size)
	var kvs []*mvccpb.KeyValue
	for i := range count {
		kvs = append(kvs, &mvccpb.KeyValue{Key: fmt.Appendf(nil, "key-%08d", i), Value: value, CreateRevision: 2, ModRevision: int64(2 + i), Version: 1})
	}
	switch method {
	case "KV/Range":
		return &etcdserverpb.RangeResponse{Header: header, Kvs: kvs, Count: int64(count)}, nil
	case "KV/RangeStream":
		return &etcdserverpb.RangeStreamResponse{RangeResponse: &etcdserverpb.RangeResponse{Header: header, Kvs: kvs, Count: int64(count)}}, nil
	case "Watch/Watch":
		response := &etcdserverpb.WatchResponse{Header: header}
		for _, kv := range kvs {
			response.Events = append(response.Events, &mvccpb.Event{Kv: kv})
		}
		return response, nil
	}
	return nil, fmt.Errorf("send-size is for KV/Range, KV/RangeStream and Watch/Watch, not for %s", method)
}
