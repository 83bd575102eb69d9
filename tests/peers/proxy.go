package main

import (
	"bytes"
	"math/rand"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// cuttingProxy is a TCP proxy in front of the server that counts the requests it sees and, once armed, cuts watch
// connections by force: by a reset or in the middle of a chunk, after a random number of events. Some connections are stalled for a
// while first, so that the server feels a slow reader.
//
// A reflector treats a watch that ends within a second without one event as an error and relists (client-go
// VeryShortWatchError), and a reset may destroy bytes the client has not read yet. So a cut comes only after events, and a
// reset only on a connection older than that second: what we test is the server, not this corner of the client.
type cuttingProxy struct {
	listener net.Listener
	target   string
	cutMin   int
	cutMax   int
	armed    atomic.Bool

	mu         sync.Mutex
	random     *rand.Rand
	lists      int // LIST requests (several pages count several times)
	watchLists int // watches that ask for the initial state
	watches    int // plain watches
	others     int
	cuts       int
	resets     int
	stalls     int
	requests   []string
	conns      map[net.Conn]bool
	closed     bool
}

func newCuttingProxy(target string, cutMin, cutMax int, seed int64) (*cuttingProxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &cuttingProxy{listener: listener, target: target, cutMin: cutMin, cutMax: cutMax,
		random: rand.New(rand.NewSource(seed)), conns: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

func (p *cuttingProxy) url() string { return "http://" + p.listener.Addr().String() }

func (p *cuttingProxy) close() {
	p.mu.Lock()
	p.closed = true
	for conn := range p.conns {
		conn.Close()
	}
	p.mu.Unlock()
	p.listener.Close()
}

func (p *cuttingProxy) counts() (lists, watchLists, watches, cuts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lists, p.watchLists, p.watches, p.cuts
}

func (p *cuttingProxy) lastRequests(n int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.requests) > n {
		return append([]string(nil), p.requests[len(p.requests)-n:]...)
	}
	return append([]string(nil), p.requests...)
}

func (p *cuttingProxy) track(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[conn] = true
	return true
}

func (p *cuttingProxy) untrack(conn net.Conn) {
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
	conn.Close()
}

func (p *cuttingProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		if !p.track(client) || !p.track(server) {
			client.Close()
			server.Close()
			return
		}
		c := &proxiedConn{proxy: p, client: client.(*net.TCPConn), server: server.(*net.TCPConn)}
		go c.requests()
		go c.answers()
	}
}

type proxiedConn struct {
	proxy   *cuttingProxy
	client  *net.TCPConn
	server  *net.TCPConn
	watches atomic.Bool // the request under way is a watch
	opened  atomic.Int64
}

// requests forwards client to server and notes every request line. Clients behind this proxy only send GET, without bodies.
func (c *proxiedConn) requests() {
	defer c.proxy.untrack(c.server)
	buffer := make([]byte, 32<<10)
	var line []byte
	for {
		n, err := c.client.Read(buffer)
		for _, b := range buffer[:n] {
			if b != '\n' {
				line = append(line, b)
				continue
			}
			if text := string(line); strings.HasPrefix(text, "GET ") {
				c.request(strings.Fields(text)[1])
			}
			line = line[:0]
		}
		if n > 0 {
			if _, err := c.server.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *proxiedConn) request(target string) {
	parsed, err := url.Parse(target)
	if err != nil {
		return
	}
	query := parsed.Query()
	watch := query.Get("watch") == "true" || query.Get("watch") == "1"
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.proxy.requests = append(c.proxy.requests, target)
	switch {
	case watch && query.Get("sendInitialEvents") == "true":
		c.proxy.watchLists++
	case watch:
		c.proxy.watches++
	default:
		c.proxy.lists++
	}
	c.watches.Store(watch)
	c.opened.Store(time.Now().UnixNano())
}

var eventMark = []byte(`"type":"`)

// answers forwards server to client and cuts.
func (c *proxiedConn) answers() {
	defer c.proxy.untrack(c.client)
	p := c.proxy
	p.mu.Lock()
	limit := p.cutMin + p.random.Intn(p.cutMax-p.cutMin+1)
	stallAt := -1
	if p.random.Intn(4) == 0 {
		stallAt = limit / 2
	}
	p.mu.Unlock()
	events := 0
	var carry []byte // a mark may lie across two reads
	buffer := make([]byte, 32<<10)
	for {
		n, err := c.server.Read(buffer)
		if n > 0 {
			forward := buffer[:n]
			if c.watches.Load() && p.armed.Load() {
				forwarded := events // the client has at least all but the last of these
				window := append(carry, forward...)
				events += bytes.Count(window, eventMark)
				if tail := len(eventMark) - 1; len(window) > tail {
					window = window[len(window)-tail:]
				}
				carry = append([]byte(nil), window...)
				if stallAt >= 0 && events >= stallAt {
					stallAt = -1
					p.mu.Lock()
					p.stalls++
					p.mu.Unlock()
					pause(300 * time.Millisecond)
				}
				if events >= limit && forwarded >= 2 {
					c.cut(forward)
					return
				}
			} else {
				carry = nil
			}
			if _, err := c.client.Write(forward); err != nil {
				c.server.Close()
				return
			}
		}
		if err != nil {
			_ = c.client.CloseWrite()
			return
		}
	}
}

// cut forwards a random part of the last bytes, then ends the client's connection: in the middle of a chunk, or by a reset.
func (c *proxiedConn) cut(last []byte) {
	p := c.proxy
	p.mu.Lock()
	part := p.random.Intn(len(last) + 1)
	old := time.Now().UnixNano()-c.opened.Load() > int64(1200*time.Millisecond)
	reset := old && p.random.Intn(2) == 0
	p.cuts++
	if reset {
		p.resets++
	}
	p.mu.Unlock()
	_, _ = c.client.Write(last[:part])
	if reset {
		_ = c.client.SetLinger(0)
	}
	c.client.Close()
	c.server.Close()
}
