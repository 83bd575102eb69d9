package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// etcd-falsify: a gRPC proxy between `vedette verify --drive` and an honest etcd falsifies one response in five that it can falsify. verify must find each
// falsification, and nothing where nothing is falsified.

// A falsification of a watch: which responses it can change, and what is sent in the place of one.
type falsification struct {
	name  string
	can   func(response *pb.WatchResponse) bool // nil: nothing is falsified
	apply func(response *pb.WatchResponse) []*pb.WatchResponse
	holds bool // the response is sent after the next one with events
}

func hasEvents(response *pb.WatchResponse) bool { return len(response.Events) > 0 }

func hasTwoEvents(response *pb.WatchResponse) bool { return len(response.Events) > 1 }

func hasValue(response *pb.WatchResponse) bool {
	return hasEvents(response) && len(response.Events[0].Kv.Value) > 0
}

func hasPrevious(response *pb.WatchResponse) bool {
	return hasEvents(response) && response.Events[0].PrevKv != nil
}

func isCreation(response *pb.WatchResponse) bool { return response.Created && !response.Canceled }

func clone(response *pb.WatchResponse) *pb.WatchResponse {
	return proto.Clone(response).(*pb.WatchResponse)
}

func one(response *pb.WatchResponse) []*pb.WatchResponse { return []*pb.WatchResponse{response} }

// progressAt is progress of the watch that the response belongs to.
func progressAt(response *pb.WatchResponse, revision int64) *pb.WatchResponse {
	header := proto.Clone(response.Header).(*pb.ResponseHeader)
	header.Revision = revision
	return &pb.WatchResponse{Header: header, WatchId: response.WatchId}
}

var falsifications = []falsification{
	{name: "nothing"},
	{name: "response-twice", can: hasEvents, apply: func(r *pb.WatchResponse) []*pb.WatchResponse { return []*pb.WatchResponse{r, clone(r)} }},
	{name: "event-twice", can: hasEvents, apply: func(r *pb.WatchResponse) []*pb.WatchResponse {
		again := clone(r)
		again.Events = again.Events[:1]
		return []*pb.WatchResponse{r, again}
	}},
	{name: "no-previous", can: hasPrevious, apply: func(r *pb.WatchResponse) []*pb.WatchResponse {
		r.Events[0].PrevKv = nil
		return one(r)
	}},
	{name: "other-previous", can: hasPrevious, apply: func(r *pb.WatchResponse) []*pb.WatchResponse {
		r.Events[0].PrevKv.Value = []byte("another")
		return one(r)
	}},
	{name: "lost", can: hasEvents, apply: func(*pb.WatchResponse) []*pb.WatchResponse { return nil }},
	{name: "event-lost", can: hasTwoEvents, apply: func(r *pb.WatchResponse) []*pb.WatchResponse {
		r.Events = r.Events[1:]
		return one(r)
	}},
	{name: "swapped", can: hasEvents, holds: true},
	{name: "progress-ahead", can: hasEvents, apply: func(r *pb.WatchResponse) []*pb.WatchResponse {
		return []*pb.WatchResponse{progressAt(r, r.Header.Revision), r}
	}},
	{name: "progress-back", can: hasEvents, apply: func(r *pb.WatchResponse) []*pb.WatchResponse {
		return []*pb.WatchResponse{r, progressAt(r, r.Events[0].Kv.ModRevision-1)}
	}},
	{name: "other-value", can: hasValue, apply: func(r *pb.WatchResponse) []*pb.WatchResponse {
		r.Events[0].Kv.Value = append([]byte("x"), r.Events[0].Kv.Value...)
		return one(r)
	}},
	{name: "older-header", can: hasEvents, apply: func(r *pb.WatchResponse) []*pb.WatchResponse {
		r.Header.Revision = r.Events[0].Kv.ModRevision - 1
		return one(r)
	}},
	{name: "created-twice", can: isCreation, apply: func(r *pb.WatchResponse) []*pb.WatchResponse { return []*pb.WatchResponse{r, clone(r)} }},
}

// A falsifyingProxy passes all calls on; some responses of watches are falsified.
type falsifyingProxy struct {
	rule    falsification
	target  *grpc.ClientConn
	address string
	server  *grpc.Server

	mu      sync.Mutex
	chances int
	made    int
}

func newFalsifyingProxy(rule falsification, target string) (*falsifyingProxy, error) {
	p := &falsifyingProxy{rule: rule}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.address = listener.Addr().String()
	if p.target, err = grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(1<<30))); err != nil {
		return nil, err
	}
	p.server = grpc.NewServer(grpc.UnknownServiceHandler(p.handle), grpc.ForceServerCodec(rawCodec{}), grpc.MaxRecvMsgSize(64<<20), grpc.MaxSendMsgSize(1<<30))
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

func (p *falsifyingProxy) close() {
	p.server.Stop()
	_ = p.target.Close()
}

func (p *falsifyingProxy) handle(_ any, down grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(down)
	incoming, _ := metadata.FromIncomingContext(down.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(down.Context(), incoming))
	defer cancel()
	up, err := p.target.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			message := &rawMessage{}
			if err := down.RecvMsg(message); err != nil {
				if errors.Is(err, io.EOF) {
					_ = up.CloseSend()
				} else {
					cancel()
				}
				return
			}
			if up.SendMsg(message) != nil {
				return
			}
		}
	}()
	var held *pb.WatchResponse
	for {
		message := &rawMessage{}
		if err := up.RecvMsg(message); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if strings.HasSuffix(method, "Watch/Watch") && p.rule.can != nil {
			err = p.falsify(down, message, &held)
		} else {
			err = down.SendMsg(message)
		}
		if err != nil {
			return err
		}
	}
}

// chooses one in five of the responses that can be changed.
func (p *falsifyingProxy) chooses(response *pb.WatchResponse) bool {
	if !p.rule.can(response) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chances++
	if p.chances%5 != 0 {
		return false
	}
	p.made++
	return true
}

func (p *falsifyingProxy) falsify(down grpc.ServerStream, message *rawMessage, held **pb.WatchResponse) error {
	response := &pb.WatchResponse{}
	if err := proto.Unmarshal(message.bytes, response); err != nil {
		return err
	}
	sent := one(response)
	switch {
	case *held != nil && hasEvents(response) && response.WatchId == (*held).WatchId:
		sent = append(sent, *held)
		*held = nil
	case *held != nil || !p.chooses(response):
	case p.rule.holds:
		*held, sent = response, nil
	default:
		sent = p.rule.apply(response)
	}
	for _, one := range sent {
		if err := down.SendMsg(one); err != nil {
			return err
		}
	}
	return nil
}

// verifyThrough runs verify on the proxy; it ends with its first violation, or when the time is over.
func verifyThrough(vedette string, rule falsification, target string, duration string, report *report) {
	proxy, err := newFalsifyingProxy(rule, target)
	if !report.check(err == nil, "verify", "%s: %v", rule.name, err) {
		return
	}
	defer proxy.close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // ends what hangs
	defer cancel()
	arguments := []string{"verify", "--etcd", "http://" + proxy.address, "--drive", "--writers", "4", "-q", "-o", "json"}
	if rule.can == nil {
		arguments = append(arguments, "--duration", duration)
	}
	command := exec.CommandContext(ctx, vedette, arguments...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err = command.Run()
	proxy.mu.Lock()
	made := proxy.made
	proxy.mu.Unlock()
	code := command.ProcessState.ExitCode()
	if rule.can == nil {
		report.check(code == 0, "verify", "an honest server is blamed: %s", output.String())
		return
	}
	report.check(code == 1 && strings.Contains(output.String(), `"violation"`) && made > 0, "verify",
		"%s: made %d times, verify ended with %d: %s", rule.name, made, code, output.String())
}

func runEtcdFalsify(args []string) int {
	flags := flag.NewFlagSet("etcd-falsify", flag.ExitOnError)
	program := flags.String("program", "", "the program vedette")
	only := flags.String("only", "", "only this falsification")
	duration := flags.String("duration", "5s", "how long verify looks at a server that is honest")
	_ = flags.Parse(args)
	endpoint := strings.Split(os.Getenv("ETCD_ENDPOINTS"), ",")[0]
	if *program == "" || endpoint == "" {
		fmt.Fprintln(os.Stderr, "etcd-falsify: --program and $ETCD_ENDPOINTS are needed")
		return 2
	}
	target := strings.TrimPrefix(endpoint, "http://")
	report := newReport("etcd-falsify")
	var all sync.WaitGroup
	slots := make(chan struct{}, 3)
	for _, rule := range falsifications {
		if *only != "" && *only != rule.name {
			continue
		}
		all.Add(1)
		go func() {
			defer all.Done()
			slots <- struct{}{}
			verifyThrough(*program, rule, target, *duration, report)
			<-slots
		}()
	}
	all.Wait()
	report.figure("falsifications", len(falsifications)-1)
	return report.finish()
}
