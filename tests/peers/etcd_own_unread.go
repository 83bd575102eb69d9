package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// unread: clients that ask for everything, again and again over several connections, and read none of it, cost a bounded memory in all; each of their calls ends with a word for it, and whoever reads
// is served.
func (o *etcdOwn) unread() {
	const bound, answers, connections, calls = 64 << 20, 16, 3, 24
	s := o.open(false, "--max-unsent-bytes", fmt.Sprint(bound))
	if s == nil {
		return
	}
	defer s.close()
	all := &pb.RangeRequest{Key: []byte("u/"), RangeEnd: []byte("u0")}
	for i := 0; i < answers; i++ {
		if _, err := s.side.kv.Put(s.ctx, &pb.PutRequest{Key: fmt.Appendf(nil, "u/%02d", i), Value: bytes.Repeat([]byte("u"), 1<<20)}); err != nil {
			o.report.violation("etcd-own", "filling: %v", err)
			return
		}
	}
	if _, err := s.side.kv.Range(s.ctx, all); err != nil {
		o.report.violation("etcd-own", "everything, once: %v", err)
		return
	}
	load := &etcdLoad{pid: s.command.Process.Pid}
	_, before := load.usage()
	var ended atomic.Int64 // calls that heard RESOURCE_EXHAUSTED, or were reset for it
	for i := 0; i < connections; i++ {
		connection, err := net.Dial("tcp", s.url)
		if err != nil {
			o.report.violation("etcd-own", "%v", err)
			return
		}
		defer connection.Close()
		raw := &portRaw{}
		raw.encoder = hpack.NewEncoder(&raw.block)
		framer := http2.NewFramer(connection, connection)
		framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		_, _ = connection.Write([]byte(http2.ClientPreface))
		_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		body, _ := proto.Marshal(all)
		message := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
		for id := uint32(1); id < 2*calls; id += 2 {
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: raw.headers("/etcdserverpb.KV/Range"), EndHeaders: true})
			_ = framer.WriteData(id, true, message)
		}
		go func() {
			for {
				frame, err := framer.ReadFrame()
				if err != nil {
					return
				}
				switch frame := frame.(type) {
				case *http2.RSTStreamFrame:
					if frame.ErrCode == http2.ErrCodeEnhanceYourCalm {
						ended.Add(1)
					}
				case *http2.MetaHeadersFrame:
					for _, field := range frame.Fields {
						if field.Name == "grpc-status" && field.Value == fmt.Sprint(int(codes.ResourceExhausted)) {
							ended.Add(1)
						}
					}
				}
			}
		}()
	}
	// What is small is served at once, whatever others hold; what is large as soon as there is room.
	due := time.Now().Add(ownPatience)
	for held := int64(connections * calls); held > 2 && time.Now().Before(due); held = connections*calls - ended.Load() {
		_, err := s.side.kv.Put(s.ctx, &pb.PutRequest{Key: []byte("small"), Value: []byte("v")})
		o.report.check(err == nil, "etcd-own", "a put beside clients that do not read: %v", err)
		if err != nil {
			return
		}
		_, err = s.side.kv.Range(s.ctx, all)
		o.report.check(err == nil || status.Code(err) == codes.ResourceExhausted, "etcd-own", "everything, beside clients that do not read: %v", err)
	}
	o.report.check(ended.Load() >= connections*calls-2, "etcd-own", "of %d calls that nobody reads %d were ended", connections*calls, ended.Load())
	_, err := s.side.kv.Range(s.ctx, all)
	o.report.check(err == nil, "etcd-own", "everything, when there is room again: %v", err)
	// The bound, and what is being made or read by us meanwhile.
	limit := (bound + 6*answers<<20) >> 10
	most := peakOf(s.command.Process.Pid)
	if os.Getenv("VEDETTE_SANITIZED") != "" {
		limit *= 4
	}
	o.report.check(most-before < limit, "etcd-own", "%d answers of %d MiB that nobody reads cost %d MiB", connections*calls, answers, (most-before)>>10)
	o.report.figure("unreadMiB", (most-before)>>10)
}

// peakOf: the most memory that a process ever had, in KiB.
func peakOf(pid int) (peak int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for _, line := range strings.Split(string(text), "\n") {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &peak); err == nil {
			return peak
		}
	}
	return 0
}

// created: the revision that Created tells is where the watch began: the next one is its first event, also while others write (upstream reads it later: E-330).
func (o *etcdOwn) created() {
	s := o.open(false)
	if s == nil {
		return
	}
	defer s.close()
	stop := make(chan struct{})
	defer close(stop)
	for i := 0; i < 4; i++ {
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.side.kv.Put(s.ctx, &pb.PutRequest{Key: []byte("k"), Value: []byte("v")}); err != nil {
					return
				}
			}
		}()
	}
	stream, err := s.side.watch.Watch(s.ctx)
	if err != nil {
		o.report.violation("E-330", "%v", err)
		return
	}
	for i := int64(0); i < 500; i++ {
		_ = stream.Send(creating(&pb.WatchCreateRequest{Key: []byte("k")}))
		for began := int64(0); ; {
			response, err := stream.Recv()
			if err != nil {
				o.report.violation("E-330", "watch %d: %v", i, err)
				return
			}
			if response.WatchId != i {
				continue // of the one before
			}
			if response.Created {
				began = response.Header.Revision
				continue
			}
			first := response.Events[0].Kv.ModRevision
			o.report.check(first == began+1, "E-330", "a watch that began at %d has its first event at %d", began, first)
			break
		}
		_ = stream.Send(canceling(i))
	}
}
