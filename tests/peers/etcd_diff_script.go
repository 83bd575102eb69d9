package main

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strings"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

func sortBytes(list [][]byte) {
	sort.Slice(list, func(i, j int) bool { return bytes.Compare(list[i], list[j]) < 0 })
}
func sortLeases(list []*pb.LeaseStatus) {
	sort.Slice(list, func(i, j int) bool { return list[i].ID < list[j].ID })
}

func opPut(key, value string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value)}}}
}
func opRange(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}}
}
func opDelete(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}}
}
func opTxn(txn *pb.TxnRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: txn}}
}
func then(ops ...*pb.RequestOp) *pb.TxnRequest { return &pb.TxnRequest{Success: ops} }
func many(count int, op func(i int) *pb.RequestOp) (list []*pb.RequestOp) {
	for i := 0; i < count; i++ {
		list = append(list, op(i))
	}
	return list
}

func (d *diff) status(rule string) {
	d.both(rule, "Status", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.maintenance.Status(ctx, &pb.StatusRequest{})
	})
}

// scripted is 11.1 and 11.4 of the specification, and what stands around it.
func (d *diff) scripted() {
	all := []byte{0}
	d.status("E-1101.1")
	d.both("E-1101.2", "MemberList", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.cluster.MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
	})
	d.both("E-1101.3", "AuthStatus", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.AuthStatus(ctx, &pb.AuthStatusRequest{})
	})
	d.both("E-1101.4", "Authenticate", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: "a", Password: "b"})
	})
	d.both("E-1101.4", "AuthEnable", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.AuthEnable(ctx, &pb.AuthEnableRequest{})
	})
	d.both("E-1101.4", "AuthDisable", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.AuthDisable(ctx, &pb.AuthDisableRequest{})
	})
	d.both("E-1101.4", "UserList", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.UserList(ctx, &pb.AuthUserListRequest{})
	})
	d.hash("E-470", 0)
	d.compactTo("E-1101.5", 0, false)
	d.compactTo("E-1101.5", 0, false)
	d.compact = -1
	d.grant("E-1101.6", 77, -5)
	d.grant("E-1101.6", 77, 10)
	d.grant("E-1101.6", 79, 9000000001)
	d.revoke("E-1101.6", 77)
	d.grant("E-1101.7", 78, 5000)
	for i, key := range []string{"b", "a", "c", "d"} {
		request := &pb.PutRequest{Key: []byte(key), Value: []byte(fmt.Sprint(9 - i))}
		if key == "a" {
			request.Lease = 78
		}
		d.put("E-1101.7", request)
	}
	d.rangeKeys("E-1101.8", &pb.RangeRequest{Key: []byte("a"), KeysOnly: true})
	d.rangeKeys("E-1101.9", &pb.RangeRequest{Key: []byte("a"), RangeEnd: all, Limit: 1, SortTarget: pb.RangeRequest_VALUE})
	d.rangeKeys("E-1101.10", &pb.RangeRequest{Key: []byte("a"), RangeEnd: all, Limit: 1, MinModRevision: 3})
	d.rangeKeys("E-1101.11", &pb.RangeRequest{Key: []byte("a"), RangeEnd: all, CountOnly: true, KeysOnly: true, Revision: 3})
	d.rangeKeys("E-1101.12", &pb.RangeRequest{Key: []byte("z"), RangeEnd: []byte("a")})
	d.rangeKeys("E-1101.12", &pb.RangeRequest{Key: []byte("a"), Revision: -3})
	d.rangeKeys("E-1101.12", &pb.RangeRequest{Key: []byte("a"), Revision: 300})
	d.rangeKeys("E-1101.12", &pb.RangeRequest{Key: []byte("a"), SortOrder: 9})
	d.rangeKeys("E-420", &pb.RangeRequest{})
	d.rangeKeys("E-420", &pb.RangeRequest{SortTarget: 7})
	countA := opRange("a", "")
	countA.GetRequestRange().CountOnly = true
	d.txn("E-1101.13", then(countA, opDelete("nope", ""), opPut("x", "1"), opDelete("nope2", ""), opRange("x", ""), opTxn(&pb.TxnRequest{})))
	d.txn("E-1101.14", then(&pb.RequestOp{}))
	future := opRange("a", "")
	future.GetRequestRange().Revision = 999
	d.txn("E-1101.14", then(future))
	d.put("E-1101.14", &pb.PutRequest{Key: []byte("absent"), IgnoreValue: true})
	d.put("E-1101.14", &pb.PutRequest{Key: []byte("k"), Lease: 12345})
	d.put("E-1101.15", &pb.PutRequest{Key: []byte("big"), Value: make([]byte, 1600000)})
	d.put("E-1101.15", &pb.PutRequest{Key: []byte("big"), Value: make([]byte, 2200000)})
	d.put("E-440", &pb.PutRequest{})
	d.put("E-440", &pb.PutRequest{Key: []byte("a"), Value: []byte("x"), IgnoreValue: true})
	d.put("E-440", &pb.PutRequest{Key: []byte("a"), Lease: 78, IgnoreLease: true})
	d.remove("E-1101.16", &pb.DeleteRangeRequest{Key: []byte("nope")})
	d.remove("E-444", &pb.DeleteRangeRequest{})
	d.timeToLive("E-1101.17", 999, true)
	d.revoke("E-1101.17", 999)
	d.both("E-1101.18", "Alarm GET", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.maintenance.Alarm(ctx, &pb.AlarmRequest{})
	})
	d.both("E-1101.18", "Defragment", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.maintenance.Defragment(ctx, &pb.DefragmentRequest{})
	})
	for _, urls := range [][]string{{"http://127.0.0.1:1"}, {"https://a.example:2", "http://127.0.0.1:1"}} {
		d.both("E-160", "MemberUpdate", func(s *side, ctx context.Context) (proto.Message, error) {
			members, err := s.cluster.MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
			if err != nil {
				return nil, err
			}
			return s.cluster.MemberUpdate(ctx, &pb.MemberUpdateRequest{ID: members.Members[0].ID, PeerURLs: urls})
		})
	}
	d.both("E-160", "MemberUpdate of no member", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.cluster.MemberUpdate(ctx, &pb.MemberUpdateRequest{ID: 12345, PeerURLs: []string{"http://127.0.0.1:1"}})
	})
	d.both("E-1101.18", "MoveLeader self", func(s *side, ctx context.Context) (proto.Message, error) {
		answer, err := s.maintenance.Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return nil, err
		}
		return s.maintenance.MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: answer.Leader})
	})
	d.both("E-1101.18", "MoveLeader 5", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.maintenance.MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: 5})
	})
	for _, version := range []string{"3.3.0", "x", "", "3.7.0", "4.0"} {
		request := &pb.DowngradeRequest{Action: pb.DowngradeRequest_VALIDATE, Version: version}
		d.both("E-1101.19", "Downgrade "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) {
			return s.maintenance.Downgrade(ctx, request)
		})
	}
	d.both("E-1101.19", "Downgrade CANCEL", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.maintenance.Downgrade(ctx, &pb.DowngradeRequest{Action: pb.DowngradeRequest_CANCEL})
	})
	for _, id := range []uint64{1, 999} {
		d.both("E-166", "MemberPromote", func(s *side, ctx context.Context) (proto.Message, error) {
			return s.cluster.MemberPromote(ctx, &pb.MemberPromoteRequest{ID: id})
		})
	}
	d.txnShapes()
	d.alarms()
	d.rangeShapes()
	d.leaseShapes()
	d.versionShapes()
}

// txnShapes is the table of 11.4 and more: what is a duplicate, what is too much, what comes back from nesting.
func (d *diff) txnShapes() {
	d.txn("E-451", then(opPut("a", "1"), opPut("a", "2")))
	d.txn("E-451", then(opPut("a", "1"), opDelete("a", "b")))
	d.txn("E-451", then(opPut("b", "1"), opDelete("a", "\x00")))
	d.txn("E-451", then(opDelete("a", ""), opDelete("a", "")))
	d.txn("E-451", then(opTxn(&pb.TxnRequest{Success: []*pb.RequestOp{opPut("n", "1")}, Failure: []*pb.RequestOp{opPut("n", "2")}})))
	d.txn("E-451", then(opTxn(then(opPut("a", "1"))), opPut("a", "2")))
	d.txn("E-451", then(opDelete("a", ""), opTxn(then(opPut("a", "1")))))
	d.txn("E-451", then(opTxn(then(opPut("a", "1"))), opTxn(then(opDelete("a", "")))))
	d.txn("E-451", then(opTxn(then(opDelete("a", ""))), opTxn(then(opPut("a", "1")))))
	d.txn("E-451", &pb.TxnRequest{Failure: []*pb.RequestOp{opPut("a", "1"), opPut("a", "1")}})
	numbered := func(i int) *pb.RequestOp { return opPut(fmt.Sprint("many", i), "v") }
	d.txn("E-450", then(many(128, numbered)...))
	d.txn("E-450", then(many(129, numbered)...))
	d.txn("E-450", then(append(many(99, numbered), opTxn(then(many(29, func(i int) *pb.RequestOp { return opPut(fmt.Sprint("deep", i), "v") })...)))...))
	d.txn("E-450", then(append(many(99, numbered), opTxn(then(many(28, func(i int) *pb.RequestOp { return opPut(fmt.Sprint("deep", i), "v") })...)))...))
	d.txn("E-450", &pb.TxnRequest{Compare: []*pb.Compare{{}}})
	d.txn("E-450", then(opPut("", "x")))
	d.txn("E-450", then(opDelete("", "")))
	d.txn("E-450", then(opRange("", "")))
	d.txn("E-450", &pb.TxnRequest{Failure: []*pb.RequestOp{opPut("", "x")}})
	d.txn("E-457", then(opRange("a", "\x00")))
	d.txn("E-455", then(opPut("t1", "1"), opRange("t", "u"), opPut("t2", "2"), opRange("t", "u"), opDelete("t", "u"), opRange("t", "u")))
	d.txn("E-453", then(opPut("t1", "new"), opTxn(&pb.TxnRequest{Compare: []*pb.Compare{{Key: []byte("t1"), Target: pb.Compare_VERSION, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_Version{Version: 0}}}, Success: []*pb.RequestOp{opPut("t3", "absent before")}, Failure: []*pb.RequestOp{opPut("t3", "there")}})))
	for target := pb.Compare_VERSION; target <= pb.Compare_LEASE+1; target++ {
		for result := pb.Compare_EQUAL; result <= pb.Compare_NOT_EQUAL+1; result++ {
			for _, key := range []string{"a", "missing"} {
				for _, end := range []string{"", "c", "\x00"} {
					for _, compare := range []*pb.Compare{{}, {TargetUnion: &pb.Compare_ModRevision{ModRevision: 4}}, {TargetUnion: &pb.Compare_Version{Version: 1}},
						{TargetUnion: &pb.Compare_Value{Value: []byte("8")}}, {TargetUnion: &pb.Compare_Lease{Lease: 78}}, {TargetUnion: &pb.Compare_CreateRevision{CreateRevision: 3}}} {
						compare.Key, compare.RangeEnd, compare.Target, compare.Result = []byte(key), []byte(end), target, result
						d.txn("E-452", &pb.TxnRequest{Compare: []*pb.Compare{compare}, Success: []*pb.RequestOp{opRange("a", "")}})
					}
				}
			}
		}
	}
	d.compactTo("E-462", d.revision+5, false)
	d.hash("E-470", 0)
	d.hash("E-470", 5)
	d.hash("E-470", d.revision+1)
}

func (d *diff) alarms() {
	alarm := func(action pb.AlarmRequest_AlarmAction, kind pb.AlarmType) {
		request := &pb.AlarmRequest{Action: action, MemberID: 7, Alarm: kind}
		d.both("E-162", "Alarm "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) { return s.maintenance.Alarm(ctx, request) })
	}
	alarm(pb.AlarmRequest_ACTIVATE, pb.AlarmType_NONE)
	alarm(pb.AlarmRequest_ACTIVATE, pb.AlarmType_NOSPACE)
	alarm(pb.AlarmRequest_ACTIVATE, pb.AlarmType_NOSPACE)
	alarm(pb.AlarmRequest_GET, pb.AlarmType_CORRUPT)
	alarm(pb.AlarmRequest_GET, pb.AlarmType_NOSPACE)
	d.put("E-467", &pb.PutRequest{Key: []byte("full"), Value: []byte("x")})
	d.txn("E-467", then(opPut("full", "x")))
	d.txn("E-467", then(opRange("a", "")))
	d.remove("E-467", &pb.DeleteRangeRequest{Key: []byte("d")})
	d.grant("E-467", 500, 100)
	d.status("E-161")
	alarm(pb.AlarmRequest_DEACTIVATE, pb.AlarmType_NOSPACE)
	alarm(pb.AlarmRequest_DEACTIVATE, pb.AlarmType_NOSPACE)
	d.put("E-467", &pb.PutRequest{Key: []byte("d"), Value: []byte("6")})
}

func (d *diff) rangeShapes() {
	for i := 0; i < 12; i++ {
		d.put("E-403", &pb.PutRequest{Key: []byte(fmt.Sprintf("r/%02d", i*7%12)), Value: []byte(fmt.Sprint(i * 5 % 12)), PrevKv: true})
	}
	for i := 0; i < 12; i += 2 {
		for j := 0; j <= i/4; j++ {
			d.put("E-403", &pb.PutRequest{Key: []byte(fmt.Sprintf("r/%02d", i)), Value: []byte(fmt.Sprintf("v%02d", 30-i)), PrevKv: true})
		}
	}
	base := d.revision
	for _, limit := range []int64{0, 1, 5, 11, 12, 13, -1} {
		// Ties have no order upstream: only targets without ties are sorted here.
		for _, target := range []pb.RangeRequest_SortTarget{pb.RangeRequest_KEY, pb.RangeRequest_CREATE, pb.RangeRequest_MOD, pb.RangeRequest_VALUE} {
			for order := pb.RangeRequest_NONE; order <= pb.RangeRequest_DESCEND; order++ {
				for variant := 0; variant < 5; variant++ {
					request := &pb.RangeRequest{Key: []byte("r/"), RangeEnd: []byte("r0"), Limit: limit, SortOrder: order, SortTarget: target}
					switch variant {
					case 1:
						request.KeysOnly = true
					case 2:
						request.MinModRevision = base - 8
					case 3:
						request.MaxCreateRevision, request.Revision = base-15, base-3
					case 4:
						request.CountOnly = true
					}
					d.rangeKeys("E-427", request)
				}
			}
		}
	}
	for _, revision := range []int64{1, 2, base - 20, base - 1, base, base + 1} {
		for _, end := range []string{"", "r0", "\x00"} {
			d.rangeKeys("E-422", &pb.RangeRequest{Key: []byte("r/03"), RangeEnd: []byte(end), Revision: revision})
			d.rangeKeys("E-422", &pb.RangeRequest{Key: []byte("r/03"), RangeEnd: []byte(end), Revision: revision, CountOnly: true})
		}
	}
	for _, request := range []*pb.RangeRequest{
		{Key: []byte("r/"), RangeEnd: []byte("r0")}, {Key: []byte("r/"), RangeEnd: []byte("r0"), Limit: 5}, {Key: []byte{0}, RangeEnd: []byte{0}},
		{Key: []byte("r/"), RangeEnd: []byte("r0"), CountOnly: true}, {Key: []byte("none"), RangeEnd: []byte("nonf")}, {Key: []byte("r/03")}, {},
		{Key: []byte("r/"), RangeEnd: []byte("r0"), SortOrder: pb.RangeRequest_DESCEND}, {Key: []byte("r/"), RangeEnd: []byte("r0"), MinModRevision: 3},
		{Key: []byte("r/"), RangeEnd: []byte("r0"), Revision: base - 3, KeysOnly: true}, {Key: []byte("r/"), RangeEnd: []byte("r0"), Revision: base + 50},
		// Sorted without an order: upstream sorts each chunk by itself, so only what is one chunk there is compared.
		{Key: []byte("r/02"), RangeEnd: []byte("r/09"), SortTarget: pb.RangeRequest_VALUE}, {Key: []byte("r/02"), RangeEnd: []byte("r/09"), SortTarget: pb.RangeRequest_MOD},
		{Key: []byte("r/02"), RangeEnd: []byte("r/09"), SortTarget: pb.RangeRequest_VALUE, KeysOnly: true}, {Key: []byte("r/02"), RangeEnd: []byte("r/09"), SortTarget: pb.RangeRequest_CREATE},
		{Key: []byte("r/"), RangeEnd: []byte("r0"), SortTarget: pb.RangeRequest_VALUE, CountOnly: true},
	} {
		d.both("E-431", "RangeStream "+show(request, nil), func(s *side, ctx context.Context) (proto.Message, error) {
			stream, err := s.kv.RangeStream(ctx, request)
			if err != nil {
				return nil, err
			}
			whole := &pb.RangeResponse{}
			for {
				part, err := stream.Recv()
				if err != nil && err.Error() == "EOF" {
					return whole, nil
				}
				if err != nil {
					return nil, err
				}
				proto.Merge(whole, part.RangeResponse)
			}
		})
	}
}

func (d *diff) leaseShapes() {
	d.leaseList("E-505")
	for i := int64(1); i <= 4; i++ {
		d.grant("E-501", 900+i, 1000+i)
		d.put("E-507", &pb.PutRequest{Key: []byte(fmt.Sprint("lease/", i)), Value: []byte("x"), Lease: 900 + i})
	}
	d.grant("E-501", -5, 600)
	d.put("E-507", &pb.PutRequest{Key: []byte("lease/1"), Value: []byte("moved"), Lease: 902, PrevKv: true})
	d.put("E-443", &pb.PutRequest{Key: []byte("lease/3"), Value: []byte("detached"), PrevKv: true})
	d.put("E-441", &pb.PutRequest{Key: []byte("lease/4"), Value: []byte("kept"), IgnoreLease: true, PrevKv: true})
	d.put("E-441", &pb.PutRequest{Key: []byte("lease/4"), IgnoreValue: true, PrevKv: true})
	for _, id := range []int64{901, 902, 903, 904, -5, 12} {
		d.timeToLive("E-504", id, true)
		d.timeToLive("E-504", id, false)
	}
	d.leaseList("E-505")
	for _, id := range []int64{902, 901, 903, 901, 904, -5} {
		d.revoke("E-502", id)
		d.rangeKeys("E-502", &pb.RangeRequest{Key: []byte("lease/"), RangeEnd: []byte("lease0")})
	}
	d.both("E-503", "LeaseKeepAlive", func(s *side, ctx context.Context) (proto.Message, error) {
		stream, err := s.lease.LeaseKeepAlive(ctx)
		if err != nil {
			return nil, err
		}
		whole := &pb.LeaseLeasesResponse{}
		for _, id := range []int64{78, 999, 78} {
			if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
				return nil, err
			}
			answer, err := stream.Recv()
			if err != nil {
				return nil, err
			}
			whole.Header = answer.Header
			whole.Leases = append(whole.Leases, &pb.LeaseStatus{ID: answer.ID}, &pb.LeaseStatus{ID: answer.TTL})
		}
		return whole, stream.CloseSend()
	})
}

// hashesOfCompactions: the hash at a revision stays what it was when that revision is compacted and the store defragmented.
func (d *diff) hashesOfCompactions() {
	for i := 0; i < 3; i++ {
		for j := 0; j < 3; j++ {
			d.put("E-471", &pb.PutRequest{Key: []byte("hashed"), Value: []byte(strings.Repeat("y", j))})
		}
		if i > 0 {
			d.remove("E-471", &pb.DeleteRangeRequest{Key: []byte("hashed")})
		}
		at := d.revision
		d.hash("E-471", at)
		if i < 2 {
			d.put("E-471", &pb.PutRequest{Key: []byte("hashed"), Value: []byte("later")})
		}
		d.compactTo("E-471", at, true)
		d.both("E-471", "Defragment", func(s *side, ctx context.Context) (proto.Message, error) {
			return s.maintenance.Defragment(ctx, &pb.DefragmentRequest{})
		})
		d.hashAt("E-471", at)
	}
}

// versionShapes is what a key goes through; the golden hashes are these in full (E-472).
func (d *diff) versionShapes() {
	for i := 0; i < 6; i++ {
		d.put("E-403", &pb.PutRequest{Key: []byte("gen"), Value: []byte(strings.Repeat("x", i)), PrevKv: true})
		if i%2 == 1 {
			d.remove("E-404", &pb.DeleteRangeRequest{Key: []byte("gen"), PrevKv: true})
			d.remove("E-404", &pb.DeleteRangeRequest{Key: []byte("gen"), PrevKv: true})
		}
	}
	for back := int64(0); back < 9; back++ {
		d.rangeKeys("E-405", &pb.RangeRequest{Key: []byte("gen"), Revision: d.revision - back})
	}
	end := d.revision
	for back := int64(8); back >= 0; back-- {
		d.hash("E-470", end-back)
		d.compactTo("E-406", end-back, back%2 == 0)
		d.hash("E-470", end-back)
		d.hash("E-470", end)
		d.rangeKeys("E-406", &pb.RangeRequest{Key: []byte("gen"), Revision: end - back})
	}
	d.compactTo("E-462", end, true)
	d.compactTo("E-462", end-1, true)
	d.hashesOfCompactions()
	d.madeAgain()
}

// madeAgain: a transaction deletes every key and puts some of them again. Upstream's keep is empty at its revision, as if nothing were alive, and then no old
// record is left out of the hash. (A compaction to just that revision makes an etcd lose the keys and end at the next read of one: see remade.)
func (d *diff) madeAgain() {
	for _, key := range []string{"again/1", "again/2", "again/3"} {
		d.put("E-470", &pb.PutRequest{Key: []byte(key), Value: []byte("old")})
	}
	for _, keys := range [][]string{{}, {"again/1"}, {"again/1", "again/3"}, {"again/2", "again/4"}} {
		d.put("E-470", &pb.PutRequest{Key: []byte("again/2"), Value: []byte("before")})
		d.compactTo("E-470", d.revision, true)
		request := then(opDelete("\x00", "\x00"))
		for _, key := range keys {
			request.Success = append(request.Success, opPut(key, "new"))
		}
		d.txn("E-470", request)
		d.hash("E-470", 0)
		d.put("E-470", &pb.PutRequest{Key: []byte("again/3"), Value: []byte("after")})
		d.hash("E-470", d.revision-1)
		d.hash("E-470", 0)
	}
	d.compactTo("E-470", d.revision, true)
}

// scriptedAuth ends with authentication disabled again.
func (d *diff) scriptedAuth() {
	unary := func(rule, what string, fn call) { d.both(rule, what, fn) }
	addUser := func(name, password string) {
		unary("E-167", "UserAdd "+name, func(s *side, ctx context.Context) (proto.Message, error) {
			return s.auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: name, Password: password, Options: &authpb.UserAddOptions{}})
		})
	}
	addRole := func(name string) {
		unary("E-167", "RoleAdd "+name, func(s *side, ctx context.Context) (proto.Message, error) {
			return s.auth.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: name})
		})
	}
	grantRole := func(user, role string) {
		unary("E-167", "UserGrantRole "+user+" "+role, func(s *side, ctx context.Context) (proto.Message, error) {
			return s.auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: user, Role: role})
		})
	}
	grantPermission := func(role string, permission *authpb.Permission) {
		unary("E-167", "RoleGrantPermission "+role, func(s *side, ctx context.Context) (proto.Message, error) {
			return s.auth.RoleGrantPermission(ctx, &pb.AuthRoleGrantPermissionRequest{Name: role, Perm: permission})
		})
	}
	look := func() {
		unary("E-167", "AuthStatus", func(s *side, ctx context.Context) (proto.Message, error) {
			return s.auth.AuthStatus(ctx, &pb.AuthStatusRequest{})
		})
		unary("E-167", "UserList", func(s *side, ctx context.Context) (proto.Message, error) {
			return s.auth.UserList(ctx, &pb.AuthUserListRequest{})
		})
		unary("E-167", "RoleList", func(s *side, ctx context.Context) (proto.Message, error) {
			return s.auth.RoleList(ctx, &pb.AuthRoleListRequest{})
		})
		for _, name := range []string{"root", "u", "ghost"} {
			unary("E-167", "UserGet "+name, func(s *side, ctx context.Context) (proto.Message, error) {
				return s.auth.UserGet(ctx, &pb.AuthUserGetRequest{Name: name})
			})
		}
		for _, name := range []string{"root", "r", "ghost"} {
			unary("E-167", "RoleGet "+name, func(s *side, ctx context.Context) (proto.Message, error) {
				return s.auth.RoleGet(ctx, &pb.AuthRoleGetRequest{Role: name})
			})
		}
	}
	login := func(name, password string) {
		unary("E-168", "Authenticate "+name, func(s *side, ctx context.Context) (proto.Message, error) {
			s.token = ""
			plain, cancel := s.context()
			defer cancel()
			answer, err := s.auth.Authenticate(plain, &pb.AuthenticateRequest{Name: name, Password: password})
			if err == nil {
				s.token = answer.Token
			}
			return answer, err
		})
	}
	enable := func() {
		unary("E-167", "AuthEnable", func(s *side, ctx context.Context) (proto.Message, error) {
			return s.auth.AuthEnable(ctx, &pb.AuthEnableRequest{})
		})
	}
	look()
	enable()
	addUser("", "x")
	addUser("root", "rp")
	addUser("root", "rp")
	enable()
	addRole("")
	grantRole("root", "root")
	addRole("root")
	addRole("root")
	grantRole("root", "root")
	grantRole("ghost", "root")
	grantRole("root", "ghost")
	addUser("u", "up")
	addRole("r")
	grantPermission("r", nil)
	grantPermission("ghost", &authpb.Permission{Key: []byte("a")})
	grantPermission("r", &authpb.Permission{Key: []byte("b"), RangeEnd: []byte("a")})
	grantPermission("r", &authpb.Permission{})
	grantPermission("r", &authpb.Permission{PermType: authpb.READWRITE, Key: []byte("p/"), RangeEnd: []byte("p0")})
	grantPermission("r", &authpb.Permission{PermType: authpb.READ, Key: []byte("p0"), RangeEnd: []byte("q")})
	grantPermission("r", &authpb.Permission{PermType: authpb.WRITE, Key: []byte("single")})
	grantPermission("r", &authpb.Permission{PermType: authpb.READ, Key: []byte("single")})
	grantPermission("r", &authpb.Permission{PermType: authpb.READ, Key: []byte("z"), RangeEnd: []byte{0}})
	grantRole("u", "r")
	grantRole("u", "r")
	look()
	enable()
	enable()
	look() // nobody
	permissions := func() {
		for _, key := range []string{"p/", "p/x", "p0", "single", "single2", "z", "zz", "a"} {
			d.put("E-167", &pb.PutRequest{Key: []byte(key), Value: []byte("v")})
			d.put("E-167", &pb.PutRequest{Key: []byte(key), Value: []byte("v"), PrevKv: true})
			d.rangeKeys("E-167", &pb.RangeRequest{Key: []byte(key)})
			d.remove("E-167", &pb.DeleteRangeRequest{Key: []byte(key), PrevKv: true})
			d.txn("E-167", &pb.TxnRequest{Compare: []*pb.Compare{{Key: []byte(key)}}, Failure: []*pb.RequestOp{opPut(key, "w")}})
		}
		for _, interval := range [][2]string{{"p/", "p0"}, {"p/", "q"}, {"p/", "qa"}, {"z", "\x00"}, {"y", "\x00"}, {"single", "single\x00"}, {"", "\x00"}, {"p/a", "p0z"}} {
			d.rangeKeys("E-167", &pb.RangeRequest{Key: []byte(interval[0]), RangeEnd: []byte(interval[1])})
			d.remove("E-167", &pb.DeleteRangeRequest{Key: []byte(interval[0]), RangeEnd: []byte(interval[1])})
		}
		d.grant("E-167", 4001, 900)
		d.leaseList("E-167")
		d.timeToLive("E-167", 4001, true)
		d.put("E-167", &pb.PutRequest{Key: []byte("p/lease"), Value: []byte("v"), Lease: 4001})
		d.timeToLive("E-167", 4001, true)
		d.keepAlive("E-167", 4001)
		d.permittedWatches()
		d.revoke("E-167", 4001)
		d.hash("E-167", 0)
		d.status("E-167")
		d.compactTo("E-167", 1, false)
		d.both("E-167", "MemberList", func(s *side, ctx context.Context) (proto.Message, error) {
			return s.cluster.MemberList(ctx, &pb.MemberListRequest{})
		})
		d.both("E-167", "Alarm", func(s *side, ctx context.Context) (proto.Message, error) {
			return s.maintenance.Alarm(ctx, &pb.AlarmRequest{})
		})
		look()
		addUser("made-by", "x")
	}
	permissions()
	login("u", "wrong")
	login("ghost", "x")
	login("u", "up")
	permissions()
	login("root", "rp")
	permissions()
	unary("E-167", "UserDelete root", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.UserDelete(ctx, &pb.AuthUserDeleteRequest{Name: "root"})
	})
	unary("E-167", "RoleDelete root", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.RoleDelete(ctx, &pb.AuthRoleDeleteRequest{Role: "root"})
	})
	unary("E-167", "UserRevokeRole root", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.UserRevokeRole(ctx, &pb.AuthUserRevokeRoleRequest{Name: "root", Role: "root"})
	})
	unary("E-167", "UserRevokeRole not granted", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.UserRevokeRole(ctx, &pb.AuthUserRevokeRoleRequest{Name: "u", Role: "root"})
	})
	unary("E-167", "RoleRevokePermission absent", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.RoleRevokePermission(ctx, &pb.AuthRoleRevokePermissionRequest{Role: "r", Key: []byte("nothing")})
	})
	unary("E-167", "RoleRevokePermission", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.RoleRevokePermission(ctx, &pb.AuthRoleRevokePermissionRequest{Role: "r", Key: []byte("single")})
	})
	unary("E-167", "UserChangePassword", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.UserChangePassword(ctx, &pb.AuthUserChangePasswordRequest{Name: "u", Password: "new"})
	})
	look()
	login("u", "up")
	login("u", "new")
	look()
	login("root", "rp")
	unary("E-167", "RoleDelete r", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.RoleDelete(ctx, &pb.AuthRoleDeleteRequest{Role: "r"})
	})
	unary("E-167", "UserDelete u", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.UserDelete(ctx, &pb.AuthUserDeleteRequest{Name: "u"})
	})
	look()
	d.real.token, d.ours.token = "bad.1", "bad.1"
	d.rangeKeys("E-167", &pb.RangeRequest{Key: []byte("a")})
	login("root", "rp")
	unary("E-167", "AuthDisable", func(s *side, ctx context.Context) (proto.Message, error) {
		return s.auth.AuthDisable(ctx, &pb.AuthDisableRequest{})
	})
	d.real.token, d.ours.token = "", ""
	look()
}
