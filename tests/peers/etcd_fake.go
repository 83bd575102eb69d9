package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "go.etcd.io/etcd/api/v3/etcdserverpb" // registers the messages
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// fakeEtcd is a real gRPC server that does nothing by itself: the test on the other side of the control is the server. It sees every call
// and every message of it, and answers in any order, also in those that no real etcd ever produces.
//
//	next [METHOD]          waits for the oldest call not taken yet: "ID METHOD {metadata}", METHOD as in KV/Range
//	message ID             waits for the next message of that call: its JSON, or "half-closed", or "canceled" (the client has gone)
//	send ID JSON           sends a message; bytes are base64, as in protobuf's own JSON
//	send-raw ID BASE64     sends bytes as a message, whatever they are
//	send-size ID KEYS SIZE sends a RangeResponse or a WatchResponse of that many keys with values of that size
//	end ID CODE [TEXT]     ends the call with that status: a number, 0 for a clean end
//	canceled ID            waits until the client has gone
//	default METHOD JSON    answers that method by itself from now on (calls of it are not seen by next); "default METHOD -" stops that
//	calls                  how many calls there were, and how many are open
//	restart                closes every connection and listens again at the same port
//	goaway                 asks clients to go elsewhere once their calls are over, and listens again
//	proxy COMMAND...       faults of the network: see faultProxy
//	bad KIND               starts a server that is no gRPC server, see badServer; answers its HOST:PORT
//	bad-counts             how many connections each kind has had
type fakeEtcd struct {
	credentials credentials.TransportCredentials // nil: plain

	mu       sync.Mutex
	changed  *sync.Cond
	server   *grpc.Server
	address  string
	proxy    *faultProxy
	calls    map[int]*fakeCall
	waiting  []int
	nextID   int
	defaults map[string]string
	bad      []*badServer
}

type fakeCall struct {
	id       int
	method   string
	output   protoreflect.MessageDescriptor
	metadata metadata.MD
	stream   grpc.ServerStream

	messages []string // JSON, not taken yet
	halfway  bool     // the client has half-closed
	canceled bool
	end      chan error
	over     bool
	sending  sync.Mutex
}

const fakeWait = 5 * time.Minute

// rawMessage passes through the codec as it is.
type rawMessage struct{ bytes []byte }

// rawCodec is protobuf's, and raw bytes.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }
func (rawCodec) Marshal(value any) ([]byte, error) {
	if raw, ok := value.(*rawMessage); ok {
		return raw.bytes, nil
	}
	return proto.Marshal(value.(proto.Message))
}
func (rawCodec) Unmarshal(data []byte, value any) error {
	if raw, ok := value.(*rawMessage); ok {
		raw.bytes = append([]byte(nil), data...)
		return nil
	}
	return proto.Unmarshal(data, value.(proto.Message))
}

func newFakeEtcd(certs *testCertificates, seed int64) (*fakeEtcd, error) {
	f := &fakeEtcd{calls: map[int]*fakeCall{}, defaults: map[string]string{}, nextID: 1}
	f.changed = sync.NewCond(&f.mu)
	if certs != nil {
		f.credentials = credentials.NewTLS(certs.server.Clone())
	}
	if err := f.listen("127.0.0.1:0"); err != nil {
		return nil, err
	}
	proxy, err := newFaultProxy(f.address, seed)
	f.proxy = proxy
	return f, err
}

func (f *fakeEtcd) listen(address string) error {
	var listener net.Listener
	var err error
	// The port may still be held by connections of the server before.
	if !pollUntil(time.Minute, func() bool { listener, err = net.Listen("tcp", address); return err == nil }) {
		return err
	}
	options := []grpc.ServerOption{grpc.UnknownServiceHandler(f.handle), grpc.ForceServerCodec(rawCodec{}), grpc.MaxRecvMsgSize(64 << 20),
		grpc.MaxSendMsgSize(1 << 30)}
	if f.credentials != nil {
		options = append(options, grpc.Creds(f.credentials))
	}
	f.server = grpc.NewServer(options...)
	f.address = listener.Addr().String()
	go func(server *grpc.Server) { _ = server.Serve(listener) }(f.server)
	return nil
}

func methodDescriptor(method string) (protoreflect.MethodDescriptor, error) {
	service, name, ok := strings.Cut(method, "/")
	if !ok {
		return nil, fmt.Errorf("a method is KV/Range or so, not %q", method)
	}
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("etcdserverpb." + service))
	if err != nil {
		return nil, err
	}
	descriptor := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(name))
	if descriptor == nil {
		return nil, fmt.Errorf("no method %s", method)
	}
	return descriptor, nil
}

func newMessage(descriptor protoreflect.MessageDescriptor) (proto.Message, error) {
	found, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.FullName())
	if err != nil {
		return nil, err
	}
	return found.New().Interface(), nil
}

// compactJSON is protojson without its random spaces.
func compactJSON(message proto.Message) string {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		return "{}"
	}
	var value any
	_ = json.Unmarshal(text, &value)
	text, _ = json.Marshal(value)
	return string(text)
}

// handle is one call of a client, from its start to its end.
func (f *fakeEtcd) handle(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	method := strings.TrimPrefix(full, "/etcdserverpb.")
	descriptor, err := methodDescriptor(method)
	if err != nil {
		return status.Errorf(codes.Unimplemented, "unknown service or method %s", full)
	}
	f.mu.Lock()
	answer, isDefault := f.defaults[method]
	f.mu.Unlock()
	if isDefault {
		return f.answerByDefault(stream, descriptor, answer)
	}
	call := &fakeCall{method: method, output: descriptor.Output(), stream: stream, end: make(chan error, 1)}
	call.metadata, _ = metadata.FromIncomingContext(stream.Context())
	f.mu.Lock()
	call.id = f.nextID
	f.nextID++
	f.calls[call.id] = call
	f.waiting = append(f.waiting, call.id)
	f.changed.Broadcast()
	f.mu.Unlock()
	go f.receive(call, descriptor.Input())
	var result error
	select {
	case result = <-call.end:
	case <-stream.Context().Done():
		result = stream.Context().Err()
	}
	f.mu.Lock()
	call.over = true
	if stream.Context().Err() != nil {
		call.canceled = true
	}
	f.changed.Broadcast()
	f.mu.Unlock()
	call.sending.Lock() // a message on its way comes before the end
	defer call.sending.Unlock()
	return result
}

func (f *fakeEtcd) answerByDefault(stream grpc.ServerStream, descriptor protoreflect.MethodDescriptor, text string) error {
	request, err := newMessage(descriptor.Input())
	if err != nil {
		return err
	}
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	response, err := newMessage(descriptor.Output())
	if err != nil {
		return err
	}
	if err := protojson.Unmarshal([]byte(text), response); err != nil {
		return err
	}
	return stream.SendMsg(response)
}

func (f *fakeEtcd) receive(call *fakeCall, input protoreflect.MessageDescriptor) {
	for {
		message, err := newMessage(input)
		if err == nil {
			err = call.stream.RecvMsg(message)
		}
		f.mu.Lock()
		switch {
		case err == nil:
			call.messages = append(call.messages, compactJSON(message))
		case errors.Is(err, io.EOF):
			call.halfway = true
		default:
			call.canceled = true
		}
		f.changed.Broadcast()
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await waits until the condition holds; mu is held.
func (f *fakeEtcd) await(condition func() bool) error {
	expired := false
	timer := time.AfterFunc(fakeWait, func() {
		f.mu.Lock()
		expired = true
		f.changed.Broadcast()
		f.mu.Unlock()
	})
	defer timer.Stop()
	for !condition() {
		if expired {
			return fmt.Errorf("did not happen within %v", fakeWait)
		}
		f.changed.Wait()
	}
	return nil
}

func (f *fakeEtcd) next(method string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := -1
	err := f.await(func() bool {
		for i, id := range f.waiting {
			if f.calls[id].canceled {
				continue // of a client that has gone
			}
			if method == "" || f.calls[id].method == method {
				found = i
				return true
			}
		}
		return false
	})
	if err != nil {
		return "", fmt.Errorf("next %s: %w", method, err)
	}
	call := f.calls[f.waiting[found]]
	f.waiting = append(f.waiting[:found], f.waiting[found+1:]...)
	text, _ := json.Marshal(call.metadata)
	return fmt.Sprintf("%d %s %s", call.id, call.method, text), nil
}

func (f *fakeEtcd) call(words []string) (*fakeCall, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("usage: %s ID ...", words[0])
	}
	id, err := strconv.Atoi(words[1])
	if err != nil || f.calls[id] == nil {
		return nil, fmt.Errorf("no call %q", words[1])
	}
	return f.calls[id], nil
}

func (f *fakeEtcd) message(call *fakeCall) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.await(func() bool { return len(call.messages) > 0 || call.halfway || call.canceled || call.over }); err != nil {
		return "", fmt.Errorf("a message of call %d: %w", call.id, err)
	}
	switch {
	case len(call.messages) > 0:
		text := call.messages[0]
		call.messages = call.messages[1:]
		return text, nil
	case call.canceled || call.over:
		return "canceled", nil
	}
	return "half-closed", nil
}

func (f *fakeEtcd) send(call *fakeCall, message any) error {
	call.sending.Lock()
	defer call.sending.Unlock()
	f.mu.Lock()
	over := call.over
	f.mu.Unlock()
	if over {
		return errors.New("the call is over")
	}
	return call.stream.SendMsg(message)
}

func (f *fakeEtcd) stop() {
	f.server.Stop()
	f.proxy.close()
	for _, server := range f.bad {
		server.close()
	}
}

func (f *fakeEtcd) obey(words []string) (string, error) {
	switch words[0] {
	case "next":
		return f.next(strings.Join(words[1:], ""))
	case "default":
		if len(words) < 3 {
			return "", errors.New("usage: default METHOD JSON")
		}
		if _, err := methodDescriptor(words[1]); err != nil {
			return "", err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.defaults, words[1])
		if words[2] != "-" {
			f.defaults[words[1]] = strings.Join(words[2:], " ")
		}
		return "", nil
	case "calls":
		f.mu.Lock()
		defer f.mu.Unlock()
		open := 0
		for _, call := range f.calls {
			if !call.over {
				open++
			}
		}
		return fmt.Sprintf("%d %d", len(f.calls), open), nil
	case "restart":
		f.server.Stop()
		return "", f.listen(f.address)
	case "goaway":
		old := f.server
		go old.GracefulStop() // closes the listener at once, the connections when their calls are over
		return "", f.listen(f.address)
	case "proxy":
		if len(words) < 2 {
			return "", errors.New("usage: proxy COMMAND...")
		}
		return f.proxy.obey(words[1:])
	case "bad":
		if len(words) != 2 {
			return "", errors.New("usage: bad KIND")
		}
		server, err := startBadServer(words[1])
		if err != nil {
			return "", err
		}
		f.mu.Lock()
		f.bad = append(f.bad, server)
		f.mu.Unlock()
		return server.address(), nil
	case "bad-counts":
		return f.badCounts(), nil
	}
	f.mu.Lock()
	call, err := f.call(words)
	f.mu.Unlock()
	if err != nil {
		return "", err
	}
	rest := strings.Join(words[2:], " ")
	switch words[0] {
	case "message":
		return f.message(call)
	case "send":
		message, err := newMessage(call.output)
		if err != nil {
			return "", err
		}
		if err := protojson.Unmarshal([]byte(rest), message); err != nil {
			return "", err
		}
		return "", f.send(call, message)
	case "send-raw":
		var raw []byte
		if err := json.Unmarshal([]byte(strconv.Quote(rest)), &raw); err != nil {
			return "", err
		}
		return "", f.send(call, &rawMessage{raw})
	case "send-size":
		if len(words) != 4 {
			return "", errors.New("usage: send-size ID KEYS SIZE")
		}
		count, err1 := strconv.Atoi(words[2])
		size, err2 := strconv.Atoi(words[3])
		if err1 != nil || err2 != nil {
			return "", errors.New("two numbers are wanted")
		}
		message, err := bigMessage(call.method, count, size)
		if err != nil {
			return "", err
		}
		return "", f.send(call, message)
	case "end":
		code, text, _ := strings.Cut(rest, " ")
		number, err := strconv.Atoi(code)
		if err != nil {
			return "", fmt.Errorf("a status code is a number, not %q", code)
		}
		var result error
		if number != 0 {
			result = status.Error(codes.Code(number), text)
		}
		select {
		case call.end <- result:
			return "", nil
		default:
			return "", errors.New("the call was ended already")
		}
	case "canceled":
		f.mu.Lock()
		defer f.mu.Unlock()
		return "", f.await(func() bool { return call.canceled })
	}
	return "", fmt.Errorf("no such command: %q", strings.Join(words, " "))
}

func (f *fakeEtcd) badCounts() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[string]int{}
	for _, server := range f.bad {
		counts[server.kind] += int(server.connections.Load())
	}
	var words []string
	for kind, n := range counts {
		words = append(words, fmt.Sprintf("%s %d", kind, n))
	}
	sort.Strings(words)
	return strings.Join(words, " ")
}

// runFakeEtcd starts the fake, runs a command with it, and ends both.
func runFakeEtcd(args []string) int {
	flags, _, seed := newFlags("etcd-fake")
	withTLS := flags.Bool("tls", false, "TLS, client certificates are taken but not required: ETCD_CACERT, ETCD_CERT, ETCD_KEY")
	_ = flags.Parse(args)
	if flags.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: peers etcd-fake [--tls] [--seed N] -- COMMAND [ARG...]")
		return 2
	}
	var certs *testCertificates
	scheme := "http"
	if *withTLS {
		dir, err := os.MkdirTemp("", "vedette-fake-")
		if err == nil {
			defer os.RemoveAll(dir)
			certs, err = makeTestCertificates(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "peers etcd-fake:", err)
			return 1
		}
		scheme = "https"
	}
	fake, err := newFakeEtcd(certs, *seed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-fake:", err)
		return 1
	}
	defer fake.stop()
	control, err := serveControl(fake.obey)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-fake:", err)
		return 1
	}
	defer control.Close()
	self, _ := os.Executable()
	environment := []string{"ETCD_ENDPOINTS=" + scheme + "://" + fake.proxy.address(), "ETCD_DIRECT_ENDPOINTS=" + scheme + "://" + fake.address,
		"CONTROL=" + control.Addr().String(), "PEERS=" + self}
	if certs != nil {
		environment = append(environment, "ETCD_CACERT="+certs.caFile, "ETCD_CERT="+certs.certFile, "ETCD_KEY="+certs.keyFile)
	}
	return runCommand(context.Background(), "etcd-fake", flags.Args(), environment, nil)
}
