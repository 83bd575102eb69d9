package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// ownServer is a vedette etcd and two clients of it: clientv3, and the bare gRPC services.
type ownServer struct {
	*serverProcess
	ctx    context.Context // ends with our patience
	client *clientv3.Client
	side   *side

	report    *report
	program   string
	arguments []string
	directory string // "": it is in memory
	cancel    context.CancelFunc
}

// open starts a server, in a directory of its own when it is durable. nil: it did not start, which was reported.
func (o *etcdOwn) open(durable bool, more ...string) *ownServer {
	s := &ownServer{report: o.report, program: o.program, arguments: append([]string{"etcd", "--listen", "127.0.0.1:0"}, more...)}
	if durable {
		var err error
		if s.directory, err = os.MkdirTemp("", "etcd-own-"); err != nil {
			o.report.violation("etcd-own", "%v", err)
			return nil
		}
		s.arguments = append(s.arguments, "--data-dir", s.directory)
	} else {
		s.arguments = append(s.arguments, "--memory")
	}
	s.ctx, s.cancel = context.WithTimeout(context.Background(), ownPatience)
	if err := s.start(); err != nil {
		o.report.violation("etcd-own", "%v", err)
		s.release()
		return nil
	}
	return s
}

func (s *ownServer) start() (err error) {
	if s.serverProcess, err = startServer(s.program, s.arguments...); err != nil {
		return err
	}
	if _, err = s.awaitReady(ownPatience); err != nil {
		return err
	}
	if s.client, err = clientv3.New(clientv3.Config{Endpoints: []string{s.url}, DialTimeout: time.Second, Logger: zap.NewNop()}); err != nil {
		return err
	}
	s.side, err = dialSide("own", s.url)
	return err
}

func (s *ownServer) disconnect() {
	if s.client != nil {
		s.client.Close()
	}
	if s.side != nil {
		s.side.connection.Close()
	}
	s.client, s.side = nil, nil
}

// restart is kill -9 and a start on the same directory.
func (s *ownServer) restart() error {
	s.disconnect()
	s.kill()
	return s.start()
}

// end is SIGTERM; the clients see it.
func (s *ownServer) end() {
	if err := s.terminate(); err != nil {
		s.report.violation("etcd-own", "the end of the server: %v", err)
	}
}

func (s *ownServer) release() {
	s.disconnect()
	if s.serverProcess != nil {
		select {
		case <-s.exited:
		default:
			s.kill()
		}
	}
	s.cancel()
	if s.directory != "" {
		os.RemoveAll(s.directory)
	}
}

// close ends the server and removes what it left. After end, only the latter.
func (s *ownServer) close() {
	select {
	case <-s.exited:
	default:
		s.disconnect()
		s.end()
	}
	s.release()
}

// ownFill makes count revisions of ten keys, with many clients, and returns the last revision.
func ownFill(ctx context.Context, client *clientv3.Client, count int, value string) (last int64, err error) {
	if err := inBatches(32, 1, count, func(from, _ int) error {
		_, err := client.Put(ctx, fmt.Sprintf("b/%d", from%10), value)
		return err
	}); err != nil {
		return 0, err
	}
	answer, err := client.Get(ctx, "b/0")
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// Puts that ownFillRaw has under way; together they fit into the window of a connection.
const ownFillTogether = 128

// ownFillRaw does the same at a twentieth of the client's work: one connection, frames made once, answers counted and not read. Whether every put succeeded is
// seen from the revision afterwards.
func ownFillRaw(address string, count int, value string) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(ownPatience))
	output := bufio.NewWriterSize(connection, 64<<10)
	framer := http2.NewFramer(output, bufio.NewReaderSize(connection, 64<<10))
	raw := &portRaw{}
	raw.encoder = hpack.NewEncoder(&raw.block)
	blocks := [2][]byte{raw.headers("/etcdserverpb.KV/Put"), raw.headers("/etcdserverpb.KV/Put")} // the first teaches the second's table
	var messages [10][]byte
	for i := range messages {
		body, _ := proto.Marshal(&pb.PutRequest{Key: fmt.Appendf(nil, "b/%d", i), Value: []byte(value)})
		messages[i] = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	var lock sync.Mutex // of what follows, and of writing
	changed := sync.NewCond(&lock)
	credit, underWay, finished := int64(65535), 0, 0
	var failure error
	go func() {
		for {
			frame, err := framer.ReadFrame()
			lock.Lock()
			switch frame := frame.(type) {
			case *http2.HeadersFrame:
				if frame.StreamEnded() {
					underWay--
					finished++
				}
			case *http2.WindowUpdateFrame:
				if frame.StreamID == 0 {
					credit += int64(frame.Increment)
				}
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = framer.WriteSettingsAck()
					_ = output.Flush()
				}
			case *http2.PingFrame:
				if !frame.IsAck() {
					_ = framer.WritePing(true, frame.Data)
					_ = output.Flush()
				}
			case *http2.RSTStreamFrame, *http2.GoAwayFrame:
				err = fmt.Errorf("%v", frame)
			}
			failure = err
			changed.Signal()
			lock.Unlock()
			if err != nil {
				return
			}
		}
	}()
	lock.Lock()
	defer lock.Unlock()
	_, _ = io.WriteString(output, http2.ClientPreface)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	_ = framer.WriteWindowUpdate(0, 1<<30)
	for i := 0; i < count; i++ {
		message := messages[i%len(messages)]
		for isFull := underWay == ownFillTogether; failure == nil && (isFull || credit < int64(len(message))); isFull = underWay > ownFillTogether/2 {
			_ = output.Flush()
			changed.Wait()
		}
		if failure != nil {
			return failure
		}
		stream := uint32(2*i + 1)
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: blocks[min(i, 1)], EndHeaders: true})
		_ = framer.WriteData(stream, true, message)
		credit -= int64(len(message))
		underWay++
	}
	_ = output.Flush()
	for failure == nil && finished < count {
		changed.Wait()
	}
	if finished == count {
		return nil
	}
	return failure
}
