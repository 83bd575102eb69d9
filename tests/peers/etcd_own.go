package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ownPatience is how long anything may take before it counts as hanging; nothing is measured.
const ownPatience = 10 * time.Minute

// etcdOwn holds vedette etcd to what clients of an etcd rely on beyond single answers: watchers far behind, compaction by itself, defragmentation under load, leases over kill -9, bounds of
// streams, pings, answers that nobody reads, where a watch begins, the end.
type etcdOwn struct {
	report  *report
	program string
	count   int // revisions that a watcher is behind
}

func runEtcdOwn(args []string) int {
	flags, _, _ := newFlags("etcd-own")
	program := flags.String("program", "", "the vedette to start")
	counts := map[string]int{"": 5000, "small": 5000, "full": 500000, "long": 500000}
	count := flags.Int("behind", counts[os.Getenv("VEDETTE_TEST_SIZE")], "revisions that watchers are behind")
	only := flags.String("only", "", "one part")
	_ = flags.Parse(args)
	if *program == "" {
		fmt.Fprintln(os.Stderr, "usage: peers etcd-own --program VEDETTE [--behind N] [--only PART]")
		return 2
	}
	o := &etcdOwn{report: newReport("etcd-own"), program: *program, count: *count}
	for _, part := range []struct {
		name string
		run  func(o *etcdOwn)
	}{{"behind", (*etcdOwn).behind}, {"compaction", (*etcdOwn).compaction}, {"defragment", (*etcdOwn).defragment}, {"leases", (*etcdOwn).leases}, {"streams", (*etcdOwn).streams}, {"pings", (*etcdOwn).pings}, {"unread", (*etcdOwn).unread}, {"created", (*etcdOwn).created}, {"end", (*etcdOwn).end}} {
		if *only == "" || *only == part.name {
			part.run(o)
		}
	}
	return o.report.finish()
}

// behind: watchers that start far back and do not read cost a position each, and stop no put; when they read they get every revision once, in order.
func (o *etcdOwn) behind() {
	const watchers = 50
	s := o.open(false)
	if s == nil {
		return
	}
	defer s.close()
	if err := ownFillRaw(s.url, o.count, strings.Repeat("v", 200)); err != nil {
		o.report.violation("E-1002", "filling: %v", err)
		return
	}
	load := &etcdLoad{pid: s.command.Process.Pid}
	filling, before := load.usage()
	var streams []pb.Watch_WatchClient
	for i := 0; i < watchers; i++ {
		stream, err := s.side.watch.Watch(s.ctx)
		if err == nil {
			err = stream.Send(creating(&pb.WatchCreateRequest{Key: []byte("b/"), RangeEnd: []byte("b0"), StartRevision: 1}))
		}
		if err != nil {
			o.report.violation("E-1002", "a stream: %v", err)
			return
		}
		streams = append(streams, stream)
	}
	var last int64
	for i := 0; i < 500; i++ {
		answer, err := s.client.Put(s.ctx, "b/0", "more")
		o.report.check(err == nil, "E-1001", "a put beside watchers that are behind: %v", err)
		if err != nil {
			return
		}
		last = answer.Header.Revision
	}
	o.report.check(last == int64(o.count)+501, "E-1002", "the last revision is %d", last)
	cpu, after := load.usage()
	// Whatever reads the backlog again for a watcher, or for a put, would need minutes.
	o.report.check(cpu-filling < 30, "E-1002", "500 puts beside %d watchers that are %d revisions behind needed %.1f s of CPU", watchers, o.count, cpu-filling)
	o.report.figure("fillingSeconds", filling)
	o.report.figure("putsSeconds", cpu-filling)
	// What a stream that nobody reads may hold is 256 KiB in the transport and one message; its watcher adds nothing.
	limit := watchers<<10 + 64<<10
	if os.Getenv("VEDETTE_SANITIZED") != "" {
		limit *= 4
	}
	o.report.check(after-before < limit, "E-1002", "%d watchers that are %d revisions behind cost %d MiB", watchers, o.count, (after-before)>>10)
	o.report.figure("behindMiB", (after-before)>>10)
	var group sync.WaitGroup
	for i, stream := range streams {
		if i%25 != 0 {
			continue // one connection carries them all: two that read are enough
		}
		group.Add(1)
		go func() {
			defer group.Done()
			for at := int64(1); at < last; {
				response, err := stream.Recv()
				if err != nil || response.Canceled {
					o.report.violation("E-336", "a watcher from revision 1 at %d: %v %v", at, err, response)
					return
				}
				for _, event := range response.Events {
					if event.Kv.ModRevision != at+1 {
						o.report.violation("E-336", "revision %d after %d", event.Kv.ModRevision, at)
						return
					}
					at++
				}
			}
			o.report.check(true, "E-336", "")
		}()
	}
	group.Wait()
}

// defragment, again and again, while others write: nobody is refused or kept waiting, nothing changes.
func (o *etcdOwn) defragment() {
	s := o.open(true)
	if s == nil {
		return
	}
	defer s.close()
	done := make(chan error, 1)
	go func() {
		_, err := ownFill(s.ctx, s.client, 2000, "value")
		done <- err
	}()
	rounds := 0
	for running := true; running; rounds++ {
		_, err := s.client.Defragment(s.ctx, s.url)
		o.report.check(err == nil, "E-163", "defragment while others write: %v", err)
		if err != nil {
			s.cancel()
		}
		select {
		case err := <-done:
			o.report.check(err == nil, "E-163", "puts beside defragment: %v", err)
			running = false
		default:
			pause(pollInterval) // so that puts succeed between two of them
		}
	}
	hash, err := s.client.HashKV(s.ctx, s.url, 0)
	if err == nil {
		_, err = s.client.Defragment(s.ctx, s.url)
	}
	if err == nil {
		var again *clientv3.HashKVResponse
		if again, err = s.client.HashKV(s.ctx, s.url, 0); err == nil {
			o.report.check(hash.Hash == again.Hash && hash.Header.Revision == again.Header.Revision, "E-163", "hash %d, after defragmentation %d", hash.Hash, again.Hash)
		}
	}
	o.report.check(err == nil, "E-163", "%v", err)
	o.report.figure("defragmentations", rounds)
}

// leases go on after kill -9 with what is left of them, not with all of their time (E-508, E-509), and keys stay attached.
func (o *etcdOwn) leases() {
	s := o.open(true)
	if s == nil {
		return
	}
	defer s.close()
	lease, err := s.client.Grant(s.ctx, 1000)
	if err == nil {
		_, err = s.client.Put(s.ctx, "leased", "1", clientv3.WithLease(lease.ID))
	}
	if err != nil {
		o.report.violation("E-508", "%v", err)
		return
	}
	const kills = 3
	for i := 0; i < kills; i++ {
		pause(2 * time.Second) // the only way time passes for another process
		if err := s.restart(); err != nil {
			o.report.violation("E-508", "%v", err)
			return
		}
	}
	answer, err := s.client.TimeToLive(s.ctx, lease.ID, clientv3.WithAttachedKeys())
	o.report.check(err == nil && answer.TTL <= 1000-2*kills && answer.TTL > 0 && answer.GrantedTTL == 1000 && len(answer.Keys) == 1, "E-509", "after %d kills: %v %v", kills, answer, err)
	renewed, err := s.client.KeepAliveOnce(s.ctx, lease.ID)
	o.report.check(err == nil && renewed.TTL == 1000, "E-503", "renewed: %v %v", renewed, err)
	_, err = s.client.Revoke(s.ctx, lease.ID)
	o.report.check(err == nil, "E-502", "%v", err)
	got, err := s.client.Get(s.ctx, "leased")
	o.report.check(err == nil && len(got.Kvs) == 0, "E-502", "a key of a lease that was revoked: %v %v", got, err)
}

// streams: with --max-concurrent-streams a Go client holds its further streams back until one ends.
func (o *etcdOwn) streams() {
	const bound = 8
	s := o.open(false, "--max-concurrent-streams", fmt.Sprint(bound))
	if s == nil {
		return
	}
	defer s.close()
	// The first call makes sure that the server's settings have arrived.
	if _, err := s.side.maintenance.Status(s.ctx, &pb.StatusRequest{}); err != nil {
		o.report.violation("E-150", "%v", err)
	}
	first, end := context.WithCancel(s.ctx)
	defer end()
	for i := 0; i < bound; i++ {
		of := s.ctx
		if i == 0 {
			of = first
		}
		stream, err := s.side.watch.Watch(of)
		if err == nil {
			err = stream.Send(creating(&pb.WatchCreateRequest{Key: []byte("k")}))
		}
		if err == nil {
			_, err = stream.Recv()
		}
		o.report.check(err == nil, "E-150", "stream %d of %d: %v", i, bound, err)
	}
	short, stop := context.WithTimeout(s.ctx, 300*time.Millisecond)
	_, err := s.side.maintenance.Status(short, &pb.StatusRequest{})
	stop()
	o.report.check(status.Code(err) == codes.DeadlineExceeded, "E-150", "one more than %d streams: %v", bound, err)
	end()
	_, err = s.side.maintenance.Status(s.ctx, &pb.StatusRequest{})
	o.report.check(err == nil, "E-150", "after one stream has ended: %v", err)
}

// pings: too many end the connection with ENHANCE_YOUR_CALM too_many_pings; at the pace that a Go client keeps they do not (E-151).
func (o *etcdOwn) pings() {
	s := o.open(false)
	if s == nil {
		return
	}
	defer s.close()
	calm := make(chan string, 1)
	connection, err := net.Dial("tcp", s.url)
	if err != nil {
		o.report.violation("E-151", "%v", err)
		return
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(ownPatience))
	framer := http2.NewFramer(connection, connection)
	_, _ = connection.Write([]byte(http2.ClientPreface))
	_ = framer.WriteSettings()
	go func() {
		defer close(calm)
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			if goAway, is := frame.(*http2.GoAwayFrame); is && goAway.ErrCode == http2.ErrCodeEnhanceYourCalm {
				calm <- string(goAway.DebugData())
				return
			}
		}
	}()
	for i := 0; i < 1000 && framer.WritePing(false, [8]byte{byte(i)}) == nil; i++ {
	}
	o.report.check(<-calm == "too_many_pings", "E-151", "a flood of pings was not answered with ENHANCE_YOUR_CALM")
	if os.Getenv("VEDETTE_TEST_SIZE") != "long" {
		return
	}
	// A Go client pings no more often than every 10 s.
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.url}, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second, PermitWithoutStream: true, Logger: zap.NewNop()})
	if err != nil {
		o.report.violation("E-151", "%v", err)
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.ctx, 65*time.Second)
	defer cancel()
	for response := range client.Watch(ctx, "k") {
		o.report.check(response.Err() == nil, "E-151", "a watch under keepalive: %v", response.Err())
	}
	o.report.check(client.ActiveConnection().GetState().String() == "READY", "E-151", "after a minute of pings the connection is %v", client.ActiveConnection().GetState())
}

// end: SIGTERM ends streams with a status that says why, answers what was asked, and leaves with exit status 0.
func (o *etcdOwn) end() {
	s := o.open(false)
	if s == nil {
		return
	}
	defer s.close()
	watch, err := s.side.watch.Watch(s.ctx)
	if err == nil {
		err = watch.Send(creating(&pb.WatchCreateRequest{Key: []byte("k")}))
	}
	if err == nil {
		_, err = watch.Recv()
	}
	lease, err2 := s.side.lease.LeaseKeepAlive(s.ctx)
	if err2 == nil {
		err2 = lease.Send(&pb.LeaseKeepAliveRequest{ID: 1})
	}
	if err2 == nil {
		_, err2 = lease.Recv()
	}
	if err != nil || err2 != nil {
		o.report.violation("E-130", "%v %v", err, err2)
		return
	}
	// Puts go on until one fails: each is answered, and none hangs.
	ended, busy := make(chan error, 1), make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			if _, err := s.side.kv.Put(s.ctx, &pb.PutRequest{Key: []byte("k"), Value: []byte("v")}); err != nil {
				ended <- err
				return
			}
			if n == 20 {
				close(busy)
			}
		}
	}()
	received, renewed := make(chan error, 1), make(chan error, 1)
	go func() {
		for {
			if _, err := watch.Recv(); err != nil {
				received <- err
				return
			}
		}
	}()
	go func() {
		_, err := lease.Recv()
		renewed <- err
	}()
	select {
	case <-busy:
	case err = <-ended:
		o.report.violation("E-130", "a put before the end: %v", err)
		return
	}
	s.end()
	err = <-received
	o.report.check(status.Code(err) == codes.Unavailable && status.Convert(err).Message() == "etcdserver: server stopped", "E-130", "a watch stream at the end: %v", err)
	err = <-renewed
	o.report.check(status.Code(err) == codes.Unavailable, "E-130", "a stream of renewals at the end: %v", err)
	err = <-ended
	// A call that comes in the last moment, when core takes none any more, is canceled by it.
	o.report.check(status.Code(err) == codes.Unavailable || status.Code(err) == codes.Canceled, "E-130", "a put at the end: %v", err)
}
