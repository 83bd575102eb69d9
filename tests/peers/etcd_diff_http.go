package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// scriptedHTTP compares the endpoints of health and version (E-153): those of a real etcd's client port with those of vedette's port of their own (its client port: etcd_http.go).
func (d *diff) scriptedHTTP(real, ours string) {
	ask := func(method, endpoint, target string) string {
		request, err := http.NewRequest(method, "http://"+endpoint+target, nil)
		if err != nil {
			return err.Error()
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		lines := strings.SplitAfter(string(body), "\n")
		sort.Strings(lines) // checks have no order upstream
		return fmt.Sprintf("%d %q %q %q", answer.StatusCode, answer.Header.Get("Content-Type"), answer.Header.Get("Allow"), strings.Join(lines, ""))
	}
	compare := func(method, target string) {
		wanted, got := ask(method, real, target), ask(method, ours, target)
		d.report.check(wanted == got, "E-153", "%s %s\n  etcd:    %s\n  vedette: %s", method, target, wanted, got)
	}
	alarm := func(action pb.AlarmRequest_AlarmAction, kind pb.AlarmType) {
		d.both("E-153", "Alarm", func(s *side, ctx context.Context) (proto.Message, error) {
			return s.maintenance.Alarm(ctx, &pb.AlarmRequest{Action: action, MemberID: 7, Alarm: kind})
		})
	}
	every := func() {
		for _, target := range []string{"/health", "/health?serializable=true", "/health?exclude=NOSPACE", "/health?exclude=NOSPACE&exclude=CORRUPT", "/livez", "/livez?verbose", "/livez/serializable_read",
			"/readyz", "/readyz?verbose", "/readyz/data_corruption", "/readyz/serializable_read", "/readyz/linearizable_read", "/readyz/non_learner", "/readyz?exclude=data_corruption",
			"/readyz?verbose&exclude=data_corruption", "/livez/data_corruption?verbose", "/livez/none"} {
			compare("GET", target)
		}
	}
	compare("GET", "/version")
	every()
	for _, target := range []string{"/version", "/health", "/livez", "/readyz"} {
		compare("POST", target)
		compare("DELETE", target)
	}
	compare("GET", "/nothing")
	alarm(pb.AlarmRequest_ACTIVATE, pb.AlarmType_NOSPACE)
	every()
	alarm(pb.AlarmRequest_DEACTIVATE, pb.AlarmType_NOSPACE)
	alarm(pb.AlarmRequest_ACTIVATE, pb.AlarmType_CORRUPT)
	every()
	alarm(pb.AlarmRequest_DEACTIVATE, pb.AlarmType_CORRUPT)
	every()
}

func (d *diff) keepAlive(rule string, id int64) {
	d.both(rule, fmt.Sprint("LeaseKeepAlive ", id), func(s *side, ctx context.Context) (proto.Message, error) {
		stream, err := s.lease.LeaseKeepAlive(ctx)
		if err != nil {
			return nil, err
		}
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
			return nil, err
		}
		return stream.Recv()
	})
}

// permittedWatches: what the user at hand may watch, in a stream of its own (E-133, E-312).
func (d *diff) permittedWatches() {
	for _, interval := range [][2]string{{"p/", "p0"}, {"p/", ""}, {"p/", "q"}, {"p/", "qa"}, {"single", ""}, {"z", "\x00"}, {"y", "\x00"}, {"", "\x00"}, {"a", ""}, {"b", "a"}} {
		request := &pb.WatchCreateRequest{Key: []byte(interval[0]), RangeEnd: []byte(interval[1])}
		d.both("E-133", "Watch "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) {
			stream, err := s.watch.Watch(ctx)
			if err == nil {
				err = stream.Send(creating(request))
			}
			if err != nil {
				return nil, err
			}
			return stream.Recv()
		})
	}
}
