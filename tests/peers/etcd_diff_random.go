package main

import (
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

var diffKeys = []string{"a", "a\x00", "aa", "ab", "b", "ba", "c", "\x00", "\xff", "\xff\xff", "k/1", "k/2", "k/22", "k/3"}

func (d *diff) key() []byte { return []byte(diffKeys[d.random.Intn(len(diffKeys))]) }
func (d *diff) end() []byte {
	switch d.random.Intn(5) {
	case 0, 1:
		return nil
	case 2:
		return []byte{0}
	default:
		return d.key()
	}
}
func (d *diff) coin(n int) bool { return d.random.Intn(n) == 0 }
func (d *diff) someRevision() int64 {
	switch d.random.Intn(6) {
	case 0, 1, 2:
		return 0
	case 3:
		return d.revision - int64(d.random.Intn(30))
	case 4:
		return max(d.compact, 0) + int64(d.random.Intn(3)) - 1
	default:
		return d.revision + int64(d.random.Intn(3)) - 1
	}
}
func (d *diff) someLease() int64 {
	if len(d.leases) == 0 || d.coin(2) {
		return 0
	}
	if d.coin(12) {
		return 424242
	}
	return d.leases[d.random.Intn(len(d.leases))]
}

func (d *diff) randomRange(nested bool) *pb.RangeRequest {
	request := &pb.RangeRequest{Key: d.key(), RangeEnd: d.end(), Revision: max(d.someRevision(), 0), Limit: int64(d.random.Intn(6)), KeysOnly: d.coin(4), CountOnly: d.coin(6),
		Serializable: d.coin(3)}
	if d.coin(3) {
		// Ties have no order upstream, and only key, create and mod revision have none; the create revisions of one transaction are equal.
		request.SortTarget = []pb.RangeRequest_SortTarget{pb.RangeRequest_KEY, pb.RangeRequest_KEY}[d.random.Intn(2)]
		request.SortOrder = pb.RangeRequest_SortOrder(d.random.Intn(3))
	}
	if d.coin(4) {
		request.MinModRevision = int64(d.random.Intn(int(d.revision) + 2))
	}
	if d.coin(4) {
		request.MaxModRevision = int64(d.random.Intn(int(d.revision) + 2))
	}
	if d.coin(6) {
		request.MinCreateRevision = int64(d.random.Intn(int(d.revision) + 2))
	}
	if d.coin(6) {
		request.MaxCreateRevision = int64(d.random.Intn(int(d.revision) + 2))
	}
	return request
}

func (d *diff) randomPut() *pb.PutRequest {
	request := &pb.PutRequest{Key: d.key(), Value: []byte(fmt.Sprint(d.random.Intn(100))), PrevKv: d.coin(3), Lease: d.someLease()}
	if d.coin(10) {
		request.IgnoreValue = true
		request.Value = nil
	}
	if d.coin(10) {
		request.IgnoreLease = true
		request.Lease = 0
	}
	return request
}

func (d *diff) randomDelete() *pb.DeleteRangeRequest {
	return &pb.DeleteRangeRequest{Key: d.key(), RangeEnd: d.end(), PrevKv: d.coin(2)}
}

func (d *diff) randomOps(depth int) (ops []*pb.RequestOp) {
	for count := d.random.Intn(4); count > 0; count-- {
		switch kind := d.random.Intn(7); {
		case kind < 2:
			put := d.randomPut()
			// Keeping what an earlier operation of the same transaction has deleted ends an etcd (a panic in its applier).
			put.IgnoreValue, put.IgnoreLease = false, false
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}})
		case kind < 4:
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: d.randomRange(true)}})
		case kind < 5:
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: d.randomDelete()}})
		case depth > 0:
			ops = append(ops, opTxn(d.randomTxn(depth-1)))
		}
	}
	return ops
}

func (d *diff) randomTxn(depth int) *pb.TxnRequest {
	request := &pb.TxnRequest{Success: d.randomOps(depth), Failure: d.randomOps(depth)}
	for count := d.random.Intn(3); count > 0; count-- {
		compare := &pb.Compare{Key: d.key(), RangeEnd: d.end(), Result: pb.Compare_CompareResult(d.random.Intn(4)), Target: pb.Compare_CompareTarget(d.random.Intn(5))}
		switch compare.Target {
		case pb.Compare_VERSION:
			compare.TargetUnion = &pb.Compare_Version{Version: int64(d.random.Intn(4))}
		case pb.Compare_CREATE:
			compare.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: int64(d.random.Intn(int(d.revision) + 2))}
		case pb.Compare_MOD:
			compare.TargetUnion = &pb.Compare_ModRevision{ModRevision: int64(d.random.Intn(int(d.revision) + 2))}
		case pb.Compare_VALUE:
			compare.TargetUnion = &pb.Compare_Value{Value: []byte(fmt.Sprint(d.random.Intn(100)))}
		case pb.Compare_LEASE:
			compare.TargetUnion = &pb.Compare_Lease{Lease: d.someLease()}
		}
		request.Compare = append(request.Compare, compare)
	}
	return request
}

// randomly: any operation in any order, with watches that see all of it.
func (d *diff) randomly(count int) {
	a, b := d.openBoth()
	if a == nil {
		return
	}
	watchers := 0
	for i := 0; i < count && !d.tooMany(); i++ {
		switch kind := d.random.Intn(100); {
		case kind < 30:
			d.put("E-403", d.randomPut())
		case kind < 50:
			_, _ = d.rangeKeys("E-421", d.randomRange(false))
		case kind < 60:
			d.remove("E-444", d.randomDelete())
		case kind < 85:
			d.txn("E-455", d.randomTxn(2))
		case kind < 88:
			id := int64(10000 + d.random.Intn(30))
			if d.grant("E-501", id, 1000+int64(d.random.Intn(1000))) == nil {
				d.leases = append(d.leases, id)
			}
		case kind < 90 && len(d.leases) > 0:
			d.revoke("E-502", d.leases[d.random.Intn(len(d.leases))])
		case kind < 92:
			d.timeToLive("E-504", d.someLease(), d.coin(2))
		case kind < 94:
			d.hash("E-470", max(d.someRevision(), 0))
		case kind < 95:
			d.compactTo("E-462", d.someRevision(), d.coin(2))
		case kind < 98 && watchers < 60:
			watchers++
			request := creating(&pb.WatchCreateRequest{Key: d.key(), RangeEnd: d.end(), PrevKv: d.coin(2), StartRevision: max(d.someRevision(), 0)})
			if d.coin(4) {
				request.GetCreateRequest().Filters = []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_FilterType(d.random.Intn(2))}
			}
			_ = a.stream.Send(request)
			_ = b.stream.Send(request)
			// Registered before anything else happens: its start is the same on both.
			settle(250*time.Millisecond, a, b)
		case kind < 99 && watchers > 0:
			request := canceling(int64(d.random.Intn(watchers)))
			settle(250*time.Millisecond, a, b)
			_ = a.stream.Send(request)
			_ = b.stream.Send(request)
			settle(250*time.Millisecond, a, b)
		default:
			d.leaseList("E-505")
		}
		if i%200 == 199 {
			settle(400*time.Millisecond, a, b)
			d.compareFlattened("E-702", a.take(), b.take())
		}
	}
	settle(500*time.Millisecond, a, b)
	d.compareFlattened("E-702", a.take(), b.take())
	d.hash("E-470", 0)
	a.cancel()
	b.cancel()
	d.report.figure("revision", d.revision)
	d.report.figure("watchers", watchers)
}

func (d *diff) tooMany() bool {
	d.report.mu.Lock()
	defer d.report.mu.Unlock()
	return d.report.failed > 40
}
