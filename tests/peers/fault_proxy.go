package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// faultProxy is a TCP proxy that does to connections what networks do to them. It knows nothing of the protocol. What is set holds
// for every connection, those under way included, until it is changed or healed.
//
//	cut [fin]            ends all connections under way, by a reset (fin: in order)
//	half-open server     resets the server's side of all connections; the client is told nothing, and what it sends is swallowed
//	half-open client     the other way round
//	hold up|down|both    bytes to the server (up) or to the client (down) wait here, as if the network lost all packets; heal lets them flow
//	drop up|down|both    bytes are swallowed; a connection that lost some is reset by heal
//	delay DURATION       every piece of bytes arrives that much later (0: at once)
//	pieces N             bytes are passed on in pieces of at most N, each written by itself (0: as they come)
//	cut-after MIN MAX    each new connection is reset after it has passed a number of bytes to the client, drawn from MIN to MAX (0 0: never)
//	refuse on|off        new connections are reset at once
//	silent on|off        new connections are accepted, and nothing more happens
//	heal                 all of the above off; what was held flows, what lost bytes is reset
//	counts               answers: connections made, open now, cut, bytes to the client
type faultProxy struct {
	listener net.Listener
	target   string

	mu       sync.Mutex
	changed  *sync.Cond // on mu: the rules changed, or a connection ended
	random   *rand.Rand
	rules    faultRules
	conns    map[*faultConn]bool
	accepted int
	cuts     int
	down     int64
	closed   bool
}

type faultRules struct {
	hold, drop     [2]bool // by direction
	delay          time.Duration
	pieces         int
	cutMin, cutMax int64
	refuse, silent bool
}

const (
	up   = 0
	down = 1
)

type faultConn struct {
	proxy  *faultProxy
	ends   [2]*net.TCPConn // what is read for direction up: the client; for down: the server (nil until connected)
	cutAt  int64           // bytes down; 0: never
	passed int64
	lost   bool // bytes were swallowed
	over   bool
	mute   [2]bool // half-open: this direction's bytes go nowhere
}

func newFaultProxy(target string, seed int64) (*faultProxy, error) {
	return newFaultProxyAt("127.0.0.1:0", target, seed)
}

func newFaultProxyAt(address, target string, seed int64) (*faultProxy, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &faultProxy{listener: listener, target: target, random: rand.New(rand.NewSource(seed)), conns: map[*faultConn]bool{}}
	p.changed = sync.NewCond(&p.mu)
	go p.accept()
	return p, nil
}

func (p *faultProxy) address() string { return p.listener.Addr().String() }

func (p *faultProxy) close() {
	p.mu.Lock()
	p.closed = true
	for conn := range p.conns {
		conn.endLocked(true)
	}
	p.mu.Unlock()
	p.listener.Close()
}

func (p *faultProxy) accept() {
	for {
		accepted, err := p.listener.Accept()
		if err != nil {
			return
		}
		client := accepted.(*net.TCPConn)
		p.mu.Lock()
		p.accepted++
		rules := p.rules
		conn := &faultConn{proxy: p}
		conn.ends[up] = client
		if rules.cutMax > 0 {
			conn.cutAt = rules.cutMin + p.random.Int63n(rules.cutMax-rules.cutMin+1)
			if conn.cutAt == 0 {
				conn.cutAt = 1
			}
		}
		if p.closed || rules.refuse {
			p.mu.Unlock()
			reset(client)
			continue
		}
		p.conns[conn] = true
		p.mu.Unlock()
		if rules.silent {
			continue
		}
		go conn.run()
	}
}

func reset(conn *net.TCPConn) {
	if conn != nil {
		_ = conn.SetLinger(0)
		conn.Close()
	}
}

func (c *faultConn) run() {
	p := c.proxy
	server, err := net.DialTimeout("tcp", p.target, 10*time.Second)
	p.mu.Lock()
	if err != nil || c.over {
		c.endLocked(true)
		p.mu.Unlock()
		if err == nil {
			server.Close()
		}
		return
	}
	c.ends[down] = server.(*net.TCPConn)
	p.mu.Unlock()
	go c.pump(up)
	go c.pump(down)
}

// endLocked closes both sides; mu is held.
func (c *faultConn) endLocked(byReset bool) {
	if c.over {
		return
	}
	c.over = true
	delete(c.proxy.conns, c)
	for _, end := range c.ends {
		if end != nil && byReset {
			_ = end.SetLinger(0)
		}
		if end != nil {
			end.Close()
		}
	}
	c.proxy.changed.Broadcast()
}

type delayed struct {
	bytes []byte
	due   time.Time
}

// pump moves bytes of one direction. Reading and writing are apart, so that a delay does not become a limit of the rate.
func (c *faultConn) pump(direction int) {
	p := c.proxy
	queue := make(chan delayed, 256)
	go c.write(direction, queue)
	defer close(queue)
	for {
		buffer := make([]byte, 16<<10)
		n, err := c.ends[direction].Read(buffer)
		if n > 0 {
			p.mu.Lock()
			delay := p.rules.delay
			p.mu.Unlock()
			queue <- delayed{buffer[:n], time.Now().Add(delay)}
		}
		if err != nil {
			return
		}
	}
}

// mayWrite waits until bytes of this direction may go on. False: swallow them. The second result: the connection is over.
func (c *faultConn) mayWrite(direction int) (write bool, over bool) {
	p := c.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case c.over:
			return false, true
		case c.mute[direction]:
			return false, false
		case p.rules.drop[direction]:
			c.lost = true
			return false, false
		case !p.rules.hold[direction]:
			return true, false
		}
		p.changed.Wait()
	}
}

func (c *faultConn) write(direction int, queue chan delayed) {
	p := c.proxy
	to := c.ends[1-direction]
	for item := range queue {
		if wait := time.Until(item.due); wait > 0 {
			pause(wait)
		}
		for rest := item.bytes; len(rest) > 0; {
			write, over := c.mayWrite(direction)
			if over {
				drain(queue)
				return
			}
			if !write {
				break
			}
			piece := rest
			cut := false
			p.mu.Lock()
			if p.rules.pieces > 0 && len(piece) > p.rules.pieces {
				piece = piece[:p.rules.pieces]
			}
			if direction == down {
				if c.cutAt > 0 && c.passed+int64(len(piece)) >= c.cutAt {
					piece = piece[:c.cutAt-c.passed]
					cut = true
				}
				c.passed += int64(len(piece))
				p.down += int64(len(piece))
			}
			p.mu.Unlock()
			_, err := to.Write(piece)
			if cut || err != nil {
				p.mu.Lock()
				if cut && !c.over {
					p.cuts++
				}
				// Without a reset, the client has the last piece for certain.
				c.endLocked(false)
				p.mu.Unlock()
				drain(queue)
				return
			}
			rest = rest[len(piece):]
		}
	}
	// The sender is done: so is this direction.
	if write, over := c.mayWrite(direction); write && !over {
		_ = to.CloseWrite()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.mute[up] || c.mute[down] {
		return // half-open: the other end learns nothing
	}
	if direction == down {
		c.endLocked(false)
	}
}

func drain(queue chan delayed) {
	for range queue {
	}
}

func (p *faultProxy) set(change func(rules *faultRules)) {
	p.mu.Lock()
	change(&p.rules)
	p.changed.Broadcast()
	p.mu.Unlock()
}

// cut ends every connection under way and tells how many.
func (p *faultProxy) cut(byReset bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for conn := range p.conns {
		conn.endLocked(byReset)
		n++
	}
	p.cuts += n
	return n
}

// halfOpen resets one side of every connection; the other side hears nothing until heal.
func (p *faultProxy) halfOpen(resetServer bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for conn := range p.conns {
		conn.mute[up], conn.mute[down] = true, true
		conn.lost = true
		if resetServer {
			reset(conn.ends[down])
		} else {
			reset(conn.ends[up])
		}
		n++
	}
	p.cuts += n
	p.changed.Broadcast()
	return n
}

func (p *faultProxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = faultRules{}
	for conn := range p.conns {
		if conn.lost || conn.ends[down] == nil {
			conn.endLocked(true)
		}
	}
	p.changed.Broadcast()
}

// obey carries out one command (see faultProxy) and returns the answer.
func (p *faultProxy) obey(words []string) (string, error) {
	argument := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	directions := func(which string) (result [2]bool, err error) {
		switch which {
		case "up":
			result[up] = true
		case "down":
			result[down] = true
		case "both":
			result = [2]bool{true, true}
		case "none":
		default:
			err = fmt.Errorf("up, down, both or none is wanted, not %q", which)
		}
		return
	}
	onOff := func(which string) (bool, error) {
		if which != "on" && which != "off" {
			return false, fmt.Errorf("on or off is wanted, not %q", which)
		}
		return which == "on", nil
	}
	switch argument(0) {
	case "cut":
		return strconv.Itoa(p.cut(argument(1) != "fin")), nil
	case "half-open":
		if argument(1) != "server" && argument(1) != "client" {
			return "", fmt.Errorf("server or client is wanted, not %q", argument(1))
		}
		return strconv.Itoa(p.halfOpen(argument(1) == "server")), nil
	case "hold":
		which, err := directions(argument(1))
		if err != nil {
			return "", err
		}
		p.set(func(rules *faultRules) { rules.hold = which })
	case "drop":
		which, err := directions(argument(1))
		if err != nil {
			return "", err
		}
		p.set(func(rules *faultRules) { rules.drop = which })
	case "delay":
		delay, err := time.ParseDuration(argument(1))
		if err != nil {
			return "", err
		}
		p.set(func(rules *faultRules) { rules.delay = delay })
	case "pieces":
		n, err := strconv.Atoi(argument(1))
		if err != nil || n < 0 {
			return "", fmt.Errorf("a number is wanted, not %q", argument(1))
		}
		p.set(func(rules *faultRules) { rules.pieces = n })
	case "cut-after":
		low, err1 := strconv.ParseInt(argument(1), 10, 64)
		high, err2 := strconv.ParseInt(argument(2), 10, 64)
		if err1 != nil || err2 != nil || low < 0 || high < low {
			return "", fmt.Errorf("two numbers are wanted, not %q", words[1:])
		}
		p.set(func(rules *faultRules) { rules.cutMin, rules.cutMax = low, high })
	case "refuse":
		on, err := onOff(argument(1))
		if err != nil {
			return "", err
		}
		p.set(func(rules *faultRules) { rules.refuse = on })
	case "silent":
		on, err := onOff(argument(1))
		if err != nil {
			return "", err
		}
		p.set(func(rules *faultRules) { rules.silent = on })
	case "heal":
		p.heal()
	case "counts":
		p.mu.Lock()
		defer p.mu.Unlock()
		return fmt.Sprintf("accepted %d open %d cut %d bytes %d", p.accepted, len(p.conns), p.cuts, p.down), nil
	default:
		return "", fmt.Errorf("no such command of the proxy: %q", strings.Join(words, " "))
	}
	return "", nil
}

// runFaultProxy is the proxy by itself: commands on stdin, one a line, each answered by one line.
func runFaultProxy(args []string) int {
	flags, _, seed := newFlags("fault-proxy")
	target := flags.String("target", "", "HOST:PORT behind the proxy")
	listen := flags.String("listen", "127.0.0.1:0", "where to listen")
	_ = flags.Parse(args)
	if *target == "" {
		fmt.Fprintln(os.Stderr, "peers fault-proxy: --target is needed")
		return 2
	}
	proxy, err := newFaultProxyAt(*listen, *target, *seed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers fault-proxy:", err)
		return 1
	}
	fmt.Printf("listening %s\n", proxy.address())
	answerCommands(bufio.NewScanner(os.Stdin), os.Stdout, proxy.obey)
	proxy.close()
	return 0
}
