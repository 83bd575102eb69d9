package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// side is one of the two servers.
type side struct {
	name        string
	connection  *grpc.ClientConn
	kv          pb.KVClient
	lease       pb.LeaseClient
	watch       pb.WatchClient
	maintenance pb.MaintenanceClient
	cluster     pb.ClusterClient
	auth        pb.AuthClient
	token       string
	streams     []*diffStream
}

func dialSide(name, endpoint string) (*side, error) {
	endpoint = strings.TrimPrefix(endpoint, "http://")
	connection, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		return nil, err
	}
	return &side{name: name, connection: connection, kv: pb.NewKVClient(connection), lease: pb.NewLeaseClient(connection),
		watch: pb.NewWatchClient(connection), maintenance: pb.NewMaintenanceClient(connection), cluster: pb.NewClusterClient(connection),
		auth: pb.NewAuthClient(connection)}, nil
}

func (s *side) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	if s.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "token", s.token)
	}
	return ctx, cancel
}

// diff sends everything to both.
type diff struct {
	report    *report
	real      *side
	ours      *side
	random    *rand.Rand
	revision  int64 // after the last answer that had one
	compact   int64
	compacted map[int64]bool
	remade    map[int64]bool // a transaction of that revision may have deleted a key and put it again
	leases    []int64
}

// maskHeader makes answers of two servers comparable: who they are is their own affair.
func maskHeader(header *pb.ResponseHeader) {
	if header == nil {
		return
	}
	if header.ClusterId != 0 {
		header.ClusterId = 1
	}
	if header.MemberId != 0 {
		header.MemberId = 1
	}
	if header.RaftTerm != 0 {
		header.RaftTerm = 1
	}
}

type withHeader interface{ GetHeader() *pb.ResponseHeader }

func mask(message proto.Message) {
	if with, ok := message.(withHeader); ok {
		maskHeader(with.GetHeader())
	}
	switch answer := message.(type) {
	case *pb.StatusResponse:
		if answer.Leader == 0 || answer.DbSize == 0 || answer.DbSizeInUse == 0 || answer.RaftIndex == 0 || answer.RaftAppliedIndex == 0 {
			answer.Errors = append(answer.Errors, "a number is zero")
		}
		for i, text := range answer.Errors {
			answer.Errors[i] = strings.ReplaceAll(text, "  ", " ") // Go's protobuf text has one space or two, as each binary likes
		}
		answer.StorageVersion = "" // upstream's follows the cluster's version some seconds after the start
		answer.Leader, answer.DbSize, answer.DbSizeInUse, answer.RaftIndex, answer.RaftAppliedIndex, answer.RaftTerm = 1, 1, 1, 1, 1, 1
	case *pb.MemberListResponse:
		for _, member := range answer.Members {
			member.ID, member.ClientURLs, member.PeerURLs = 1, nil, nil
			member.Name = "default"
		}
	case *pb.MemberUpdateResponse:
		for _, member := range answer.Members {
			member.ID, member.ClientURLs, member.Name = 1, nil, "default"
		}
	case *pb.HashResponse:
		answer.Hash = 1
	case *pb.AuthenticateResponse:
		answer.Token = "token"
	case *pb.AlarmResponse:
		for _, alarm := range answer.Alarms {
			alarm.MemberID = 1
		}
	}
}

func show(message proto.Message, err error) string {
	if err != nil {
		state, _ := status.FromError(err)
		return fmt.Sprintf("error %d %q", state.Code(), state.Message())
	}
	text, err := protojson.MarshalOptions{EmitUnpopulated: false}.Marshal(message)
	if err != nil {
		return err.Error()
	}
	// protojson varies its blanks on purpose.
	return strings.ReplaceAll(string(text), ", ", ",")
}

func cut(text string) string {
	if len(text) > 1500 {
		return text[:1500] + "..."
	}
	return text
}

type call func(s *side, ctx context.Context) (proto.Message, error)

// both makes a call to each; the answers must be equal. Returns vedette's.
func (d *diff) both(rule, what string, fn call) (proto.Message, error) {
	var answers [2]proto.Message
	var errs [2]error
	for i, s := range []*side{d.real, d.ours} {
		ctx, cancel := s.context()
		answers[i], errs[i] = fn(s, ctx)
		cancel()
		if errs[i] == nil {
			if with, ok := answers[i].(withHeader); ok && with.GetHeader().GetRevision() > 0 {
				d.revision = with.GetHeader().Revision
			}
			mask(answers[i])
		}
	}
	same := (errs[0] == nil) == (errs[1] == nil)
	if same && errs[0] == nil {
		same = proto.Equal(answers[0], answers[1])
	} else if same {
		a, _ := status.FromError(errs[0])
		b, _ := status.FromError(errs[1])
		same = a.Code() == b.Code() && a.Message() == b.Message()
	}
	d.report.check(same, rule, "%s\n  etcd:    %s\n  vedette: %s", cut(what), cut(show(answers[0], errs[0])), cut(show(answers[1], errs[1])))
	return answers[1], errs[1]
}

func (d *diff) rangeKeys(rule string, request *pb.RangeRequest) (*pb.RangeResponse, error) {
	answer, err := d.both(rule, "Range "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) {
		return s.kv.Range(ctx, proto.Clone(request).(*pb.RangeRequest))
	})
	response, _ := answer.(*pb.RangeResponse)
	return response, err
}

func (d *diff) put(rule string, request *pb.PutRequest) {
	d.both(rule, "Put "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) { return s.kv.Put(ctx, request) })
}

func (d *diff) remove(rule string, request *pb.DeleteRangeRequest) {
	d.both(rule, "DeleteRange "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) { return s.kv.DeleteRange(ctx, request) })
}

func (d *diff) txn(rule string, request *pb.TxnRequest) {
	defer func() {
		if deletes, puts := contains(request); deletes && puts {
			d.remade[d.revision] = true
		}
	}()
	d.both(rule, "Txn "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) { return s.kv.Txn(ctx, request) })
}

// contains: whether there are deletions and puts anywhere in it.
func contains(request *pb.TxnRequest) (deletes, puts bool) {
	for _, op := range append(append([]*pb.RequestOp{}, request.Success...), request.Failure...) {
		deletes = deletes || op.GetRequestDeleteRange() != nil
		puts = puts || op.GetRequestPut() != nil
		if inner := op.GetRequestTxn(); inner != nil {
			innerDeletes, innerPuts := contains(inner)
			deletes, puts = deletes || innerDeletes, puts || innerPuts
		}
	}
	return deletes, puts
}

// compactTo: never to a revision that may have made a key again. There upstream (3.5.16 and later) keeps the tombstone instead of the key, and panics when it is read.
func (d *diff) compactTo(rule string, revision int64, physical bool) {
	if d.remade[revision] {
		return
	}
	request := &pb.CompactionRequest{Revision: revision, Physical: physical}
	_, err := d.both(rule, "Compact "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) { return s.kv.Compact(ctx, request) })
	if err == nil {
		d.compact = revision
		d.compacted[revision] = true
	}
}

// hash never asks at a revision that was compacted to: there upstream answers what it remembers of that compaction, if it still does, and ours what it was asked before (E-471).
func (d *diff) hash(rule string, revision int64) {
	if revision == 0 {
		revision = d.revision
	}
	if revision == d.compact || d.compacted[revision] {
		return
	}
	d.hashAt(rule, revision)
}

func (d *diff) hashAt(rule string, revision int64) {
	request := &pb.HashKVRequest{Revision: revision}
	d.both(rule, "HashKV "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) { return s.maintenance.HashKV(ctx, request) })
}

func (d *diff) grant(rule string, id, ttl int64) error {
	request := &pb.LeaseGrantRequest{ID: id, TTL: ttl}
	_, err := d.both(rule, "LeaseGrant "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) { return s.lease.LeaseGrant(ctx, request) })
	return err
}

func (d *diff) revoke(rule string, id int64) {
	request := &pb.LeaseRevokeRequest{ID: id}
	d.both(rule, "LeaseRevoke "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) { return s.lease.LeaseRevoke(ctx, request) })
}

func (d *diff) timeToLive(rule string, id int64, keys bool) {
	request := &pb.LeaseTimeToLiveRequest{ID: id, Keys: keys}
	d.both(rule, "LeaseTimeToLive "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) {
		answer, err := s.lease.LeaseTimeToLive(ctx, request)
		if err == nil {
			sortBytes(answer.Keys)
			if answer.TTL > 0 {
				answer.TTL = 1 // the seconds that passed between the two calls
			}
		}
		return answer, err
	})
}

func (d *diff) leaseList(rule string) {
	d.both(rule, "LeaseLeases", func(s *side, ctx context.Context) (proto.Message, error) {
		answer, err := s.lease.LeaseLeases(ctx, &pb.LeaseLeasesRequest{})
		if err == nil {
			sortLeases(answer.Leases)
		}
		return answer, err
	})
}

// runEtcdDiff: ETCD_ENDPOINTS names the real one; --program starts a vedette, or --endpoint names one.
func runEtcdDiff(args []string) int {
	flags, verbose, seed := newFlags("etcd-diff")
	program := flags.String("program", "", "the vedette to start")
	endpoint := flags.String("endpoint", "", "of a vedette etcd that runs already")
	realEndpoint := flags.String("etcd", os.Getenv("ETCD_ENDPOINTS"), "endpoint of the real etcd; both must be empty")
	count := flags.Int("operations", 3000, "random operations")
	_ = flags.Parse(args)
	_ = verbose
	if *realEndpoint == "" || (*program == "") == (*endpoint == "") {
		fmt.Fprintln(os.Stderr, "usage: peers etcd-diff --program VEDETTE | --endpoint ADDR [--etcd ADDR] [--operations N] [--seed N]")
		return 2
	}
	r := newReport("etcd-diff")
	ourHTTP := ""
	if *program != "" {
		directory, err := os.MkdirTemp("", "etcd-diff-")
		if err != nil {
			fmt.Fprintln(os.Stderr, "peers etcd-diff:", err)
			return 1
		}
		defer os.RemoveAll(directory)
		server, err := startServer(*program, "etcd", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--data-dir", directory)
		if err == nil {
			_, err = server.awaitReady(ownPatience)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "peers etcd-diff:", err)
			return 1
		}
		*endpoint, ourHTTP = server.url, server.http
		defer func() {
			if err := server.terminate(); err != nil {
				fmt.Fprintln(os.Stderr, "peers etcd-diff:", err)
			}
		}()
	}
	d := &diff{report: r, random: rand.New(rand.NewSource(*seed)), compact: -1, compacted: map[int64]bool{}, remade: map[int64]bool{}}
	var err error
	if d.real, err = dialSide("etcd", strings.Split(*realEndpoint, ",")[0]); err == nil {
		d.ours, err = dialSide("vedette", *endpoint)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-diff:", err)
		return 1
	}
	r.figure("seed", *seed)
	d.scripted()
	if ourHTTP != "" {
		d.scriptedHTTP(d.real.connection.Target(), ourHTTP)
	}
	d.scriptedWatches()
	d.randomly(*count)
	d.scriptedAuth()
	return r.finish()
}
