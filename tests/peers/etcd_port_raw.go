package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// portRaw is one HTTP/2 connection whose frames the test writes as it likes; what comes back is read and forgotten.
type portRaw struct {
	connection net.Conn
	framer     *http2.Framer
	block      bytes.Buffer
	encoder    *hpack.Encoder
}

func dialPortRaw(address string) (*portRaw, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &portRaw{connection: connection, framer: http2.NewFramer(connection, nil)}
	p.encoder = hpack.NewEncoder(&p.block)
	_ = connection.SetDeadline(time.Now().Add(20 * time.Second))
	go func() { _, _ = io.Copy(io.Discard, connection) }()
	if _, err = io.WriteString(connection, http2.ClientPreface); err == nil {
		err = p.framer.WriteSettings()
	}
	return p, err
}

// headers of a call, encoded; more are names and values.
func (p *portRaw) headers(path string, more ...string) []byte {
	p.block.Reset()
	fields := append([]string{":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", "content-type", "application/grpc", "te", "trailers"}, more...)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = p.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(p.block.Bytes())
}

// portFloods: frames that are legal one by one, and too many. Each ends when the server has cut the connection or all are sent.
func portFloods() map[string]func(p *portRaw) {
	return map[string]func(p *portRaw){
		"pings without end": func(p *portRaw) {
			for i := 0; i < 100000 && p.framer.WritePing(false, [8]byte{1}) == nil; i++ {
			}
		},
		"settings without end": func(p *portRaw) {
			for i := 0; i < 50000 && p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(65535 + i%2)}) == nil; i++ {
			}
		},
		"streams that are reset as soon as they are open": func(p *portRaw) {
			for id := uint32(1); id < 8000; id += 2 {
				if p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.headers("/etcdserverpb.Watch/Watch"), EndHeaders: true}) != nil ||
					p.framer.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
					return
				}
			}
		},
		"headers without end": func(p *portRaw) {
			piece := p.headers("/etcdserverpb.Watch/Watch", "x", string(make([]byte, 8000)))
			_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: piece})
			for i := 0; i < 8000 && p.framer.WriteContinuation(1, false, piece) == nil; i++ {
			}
		},
		"a window that overflows": func(p *portRaw) {
			for i := 0; i < 10 && p.framer.WriteWindowUpdate(0, 1<<31-1) == nil; i++ {
			}
		},
		"data of streams that do not exist": func(p *portRaw) {
			for id := uint32(1001); id < 5001; id += 2 {
				if p.framer.WriteData(id, false, make([]byte, 1000)) != nil {
					return
				}
			}
		},
		"frames of no known type": func(p *portRaw) {
			for i := 0; i < 20000 && p.framer.WriteRawFrame(http2.FrameType(200), 0, 0, make([]byte, 1000)) == nil; i++ {
			}
		},
	}
}

// portMethods are all methods of etcd's services; whether they take a stream of messages.
func portMethods() map[string]bool {
	methods := map[string]bool{}
	for _, service := range []grpc.ServiceDesc{pb.KV_ServiceDesc, pb.Watch_ServiceDesc, pb.Lease_ServiceDesc, pb.Cluster_ServiceDesc, pb.Maintenance_ServiceDesc, pb.Auth_ServiceDesc} {
		for _, method := range service.Methods {
			methods["/"+service.ServiceName+"/"+method.MethodName] = false
		}
		for _, stream := range service.Streams {
			methods["/"+service.ServiceName+"/"+stream.StreamName] = true
		}
	}
	return methods
}

// malformed messages: each is answered somehow, by every method.
func portMalformed() map[string][]byte {
	random := make([]byte, 100<<10)
	_, _ = rand.Read(random)
	return map[string][]byte{
		"bytes that are no tag":         {0xff, 0xff, 0xff},
		"a length beyond the end":       {0x0a, 0xff, 0xff, 0xff, 0xff, 0x07, 'x'},
		"groups 10000 deep":             bytes.Repeat([]byte{0x0b}, 10000),
		"messages 10000 deep":           bytes.Repeat([]byte{0x0a, 0x7f}, 10000),
		"a number of eleven bytes":      append([]byte{0x08}, bytes.Repeat([]byte{0xff}, 11)...),
		"100,000 fields nobody knows":   bytes.Repeat([]byte{0xf8, 0x07, 0x01}, 100000),
		"100 KiB of anything":           random,
		"every field a negative number": {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	}
}

// sendMalformed: an answer, whatever it is, in time.
func sendMalformed(s *side, method string, isStream bool, message []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), ownPatience)
	defer cancel()
	var answer []byte
	if !isStream {
		return s.connection.Invoke(ctx, method, &message, &answer, grpcForceRaw())
	}
	stream, err := s.connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpcForceRaw())
	if err != nil {
		return err
	}
	_ = stream.SendMsg(&message)
	_ = stream.CloseSend()
	// A watch that was created goes on after the half-close: it is enough that the server is there to say so.
	done := make(chan error, 1)
	go func() { done <- stream.RecvMsg(&answer) }()
	select {
	case err = <-done:
	case <-time.After(time.Second / 5): // the answer may be none
		cancel()
		if err = <-done; status.Code(err) == codes.Canceled {
			err = nil
		}
	}
	return err
}

// portUnfinished: calls whose message has a length and no end. The function returned lets them go.
func portUnfinished(address string, count, size int) func() {
	transport := &http2.Transport{AllowHTTP: true, DialTLSContext: func(ctx context.Context, network, _ string, _ *tls.Config) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	ctx, cancel := context.WithCancel(context.Background())
	var group, sent sync.WaitGroup
	for i := 0; i < count; i++ {
		reader, writer := io.Pipe()
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/etcdserverpb.KV/Put", reader)
		request.Header.Set("content-type", "application/grpc")
		request.Header.Set("te", "trailers")
		group.Add(1)
		sent.Add(1)
		go func() {
			defer group.Done()
			if response, err := transport.RoundTrip(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			reader.Close()
		}()
		go func() {
			defer sent.Done()
			head := make([]byte, 5)
			binary.BigEndian.PutUint32(head[1:], uint32(size)+1)
			_, _ = writer.Write(head)
			_, _ = writer.Write(make([]byte, size))
		}()
	}
	patience := make(chan struct{})
	go func() { sent.Wait(); close(patience) }()
	select {
	case <-patience:
	case <-time.After(10 * time.Second): // it did not take them all: right too
	}
	return func() {
		cancel()
		group.Wait()
		transport.CloseIdleConnections()
	}
}
