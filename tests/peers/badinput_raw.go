package main

import (
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// refusedRaw sends bytes on a connection of their own; the answer must be a Status with one of the codes, and the connection must end
// when mustClose (after bad framing nobody knows where the next request begins).
func (b *badInput) refusedRaw(rule, what, bytes string, mustClose bool, codes ...int) {
	conn, err := dialRaw(b.address)
	if !b.report.check(err == nil, rule, "%s: %v", what, err) {
		return
	}
	defer conn.Close()
	go func() { _, _ = conn.Write([]byte(bytes)) }()
	response, err := conn.readResponse(2 * time.Minute)
	if !b.report.check(err == nil, rule, "%s: no answer: %v", what, err) {
		return
	}
	decoded, err := response.decode()
	if b.report.check(err == nil, "H-101", "%s: %d: %v", what, response.status, err) {
		b.isStatus(rule, what, response, decoded, refusal{codes: codes})
	}
	if mustClose {
		b.report.check(conn.closedWithin(2*time.Minute), rule, "%s: the connection stays open after %d", what, response.status)
	}
}

// framing: what smugglers send. get must never be answered as a request of its own.
func (b *badInput) framing() {
	host := "Host: " + b.address + "\r\n"
	get := "GET " + badPath + "/w HTTP/1.1\r\n"
	body := configMapJSON("smuggled", "", "")
	post := "POST " + badPath + " HTTP/1.1\r\n" + host + jsonType + "\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	chunked := "Transfer-Encoding: chunked\r\n"
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	smuggled := get + host + "\r\n"

	b.refusedRaw("H-604", "two different Content-Lengths", post+length+"Content-Length: 5\r\n\r\n"+body+smuggled, true, 400)
	b.refusedRaw("H-604", "Content-Length list", post+fmt.Sprintf("Content-Length: %d, 5\r\n\r\n", len(body))+body+smuggled, true, 400)
	b.refusedRaw("H-604", "Content-Length and chunked", post+length+chunked+"\r\n"+chunks+smuggled, true, 400)
	b.refusedRaw("H-604", "chunked and Content-Length", post+chunked+length+"\r\n"+chunks+smuggled, true, 400)
	for _, value := range []string{"-1", "+5", "0x10", "5 5", "5;", "99999999999999999999", "1e3", "", "abc", "５"} {
		b.refusedRaw("H-604", fmt.Sprintf("Content-Length %q", value), post+"Content-Length: "+value+"\r\n\r\n"+body, true, 400, 413)
	}
	for _, value := range []string{"gzip, chunked", "chunked, identity", "xchunked", "chunked, chunked", "identity", "chunked;x", "\x0bchunked", "gzip"} {
		b.refusedRaw("H-604", fmt.Sprintf("Transfer-Encoding %q", value), post+"Transfer-Encoding: "+value+"\r\n\r\n"+chunks+smuggled, true, 400, 501)
	}
	b.refusedRaw("H-604", "Transfer-Encoding twice", post+chunked+"Transfer-Encoding: identity\r\n\r\n"+chunks, true, 400, 501)
	b.refusedRaw("H-604", "Transfer-Encoding in HTTP/1.0", strings.Replace(post, "HTTP/1.1", "HTTP/1.0", 1)+chunked+"\r\n"+chunks, true, 400, 501)
	for _, row := range [][2]string{
		{"overflowing chunk size", "FFFFFFFFFFFFFFFFF\r\nx\r\n0\r\n\r\n"}, {"negative chunk size", "-5\r\nxxxxx\r\n0\r\n\r\n"}, {"chunk size 0x5", "0x5\r\nxxxxx\r\n0\r\n\r\n"},
		{"chunk size with a blank before", " 5\r\nxxxxx\r\n0\r\n\r\n"}, {"empty chunk size", "\r\nxxxxx\r\n0\r\n\r\n"}, {"chunk that is longer than its size", "3\r\nxxxxx\r\n0\r\n\r\n"},
		{"bare LF after the chunk size", fmt.Sprintf("%x\n%s\r\n0\r\n\r\n", len(body), body)}, {"bare LF after the chunk", fmt.Sprintf("%x\r\n%s\n0\r\n\r\n", len(body), body)},
		{"huge chunk size", "7FFFFFFFFFFFFFFF\r\nxxxxx"},
	} {
		b.refusedRaw("H-604", row[0], post+chunked+"\r\n"+row[1], true, 400, 413)
	}
	b.refusedRaw("H-604", "blank before the colon of Host", get+"Host : "+b.address+"\r\n\r\n", true, 400)
	b.refusedRaw("H-604", "blank before the colon", get+host+"Accept : */*\r\n\r\n", true, 400)
	b.refusedRaw("H-604", "no Host", get+"\r\n", true, 400)
	b.refusedRaw("H-604", "two Hosts", get+host+"Host: other\r\n\r\n", true, 400)
	b.refusedRaw("H-604", "bare LF line ends", strings.ReplaceAll(get+host+"\r\n", "\r\n", "\n"), true, 400)
	b.refusedRaw("H-604", "bare LF after a header", get+host+"Accept: */*\nX: y\r\n\r\n", true, 400)
	b.refusedRaw("H-604", "bare CR in a header", get+host+"X: a\rY: b\r\n\r\n", true, 400)
	b.refusedRaw("H-604", "folded header", get+host+"X: a\r\n b\r\n\r\n", true, 400)
	b.refusedRaw("H-604", "blank before the first header", get+" "+host+"\r\n", true, 400)
	b.refusedRaw("H-604", "NUL in a header", get+host+"X: a\x00b\r\n\r\n", true, 400)
	b.refusedRaw("H-604", "control byte in a header name", get+host+"X\x01: a\r\n\r\n", true, 400)
	b.refusedRaw("H-604", "header without colon", get+host+"nonsense\r\n\r\n", true, 400)
	b.refusedRaw("H-604", "header without name", get+host+": x\r\n\r\n", true, 400)
	b.refusedRaw("H-604", "blank inside the path", "GET "+badPath+"/w x HTTP/1.1\r\n"+host+"\r\n", true, 400)
	b.refusedRaw("H-604", "no version", "GET "+badPath+"/w\r\n"+host+"\r\n", true, 400, 505)
	b.refusedRaw("H-604", "HTTP/9.9", "GET "+badPath+"/w HTTP/9.9\r\n"+host+"\r\n", true, 400, 505)
	b.refusedRaw("H-604", "HTTP/2.0 in a request line", "GET "+badPath+"/w HTTP/2.0\r\n"+host+"\r\n", true, 400, 505)
	b.refusedRaw("H-604", "lower case http", "GET "+badPath+"/w http/1.1\r\n"+host+"\r\n", true, 400, 505)
	b.refusedRaw("H-604", "HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", true, 400, 405, 501, 505)
	b.refusedRaw("H-604", "path without slash", "GET api HTTP/1.1\r\n"+host+"\r\n", false, 400, 404)
	b.refusedRaw("H-604", "control byte in the path", "GET "+badPath+"/w\x01 HTTP/1.1\r\n"+host+"\r\n", true, 400)
	b.refusedRaw("H-604", "high byte in the path", "GET "+badPath+"/\xff HTTP/1.1\r\n"+host+"\r\n", false, 400, 404)
	for _, method := range []string{"BREW", "TRACE", "CONNECT", "get", "G\x00T", "GET\t"} {
		b.refusedRaw("H-604", fmt.Sprintf("method %q", method), method+" "+badPath+"/w HTTP/1.1\r\n"+host+"\r\n", false, 400, 405, 501)
	}
	b.refusedRaw("H-601", "a header of 1 MB", get+host+"X: "+strings.Repeat("x", 1<<20)+"\r\n\r\n", true, 400, 431)
	b.refusedRaw("H-601", "100,000 headers", get+host+strings.Repeat("X: y\r\n", 100000)+"\r\n", true, 400, 431)

	// Not HTTP at all: an answer or not, but the connection ends.
	for what, bytes := range map[string]string{
		"a TLS hello": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 506), "only line ends": strings.Repeat("\r\n", 5000), "binary": "\x00\x01\x02\x03\x04\r\n\r\n",
		"an endless first line": strings.Repeat("A", 1<<20),
	} {
		conn, err := dialRaw(b.address)
		if !b.report.check(err == nil, "H-601", "%s: %v", what, err) {
			continue
		}
		go func() { _, _ = conn.Write([]byte(bytes)) }()
		if what != "only line ends" {
			b.report.check(conn.closedWithin(time.Minute), "H-601", "%s: the connection stays open", what)
		}
		conn.Close()
	}

	// Correct things that a strict parser may get wrong.
	good := func(what, bytes string, code int) {
		conn, err := dialRaw(b.address)
		if !b.report.check(err == nil, "H-506", "%s: %v", what, err) {
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte(bytes))
		response, err := conn.readResponse(2 * time.Minute)
		b.report.check(err == nil && response.status == code, "H-506", "%s: %v %v", what, err, response)
	}
	good("an empty line before the request", "\r\n"+smuggled, 200)
	good("header names in any case, no blank after the colon", get+"hOsT:"+b.address+"\r\naCCEPT:*/*\r\n\r\n", 200)
	good("blanks around a value", get+"Host: \t "+b.address+" \t \r\n\r\n", 200)
	good("absolute form", "GET http://"+b.address+badPath+"/w HTTP/1.1\r\n"+host+"\r\n", 200)
	good("HTTP/1.0", strings.Replace(smuggled, "HTTP/1.1", "HTTP/1.0", 1), 200)
	good("a body with GET", get+host+"Content-Length: 2\r\n\r\n{}", 200)
	named := strings.Replace(chunks, "smuggled", "chunkedA", 1)
	b.ask("DELETE", badPath+"/chunkeda", "")
	good("a chunked body", post+chunked+"\r\n"+strings.Replace(named, "chunkedA", "chunkeda", 1), 201)
	b.ask("DELETE", badPath+"/chunkeda", "")
	good("chunks with extension and trailer", post+"Transfer-Encoding: Chunked\r\n\r\n"+fmt.Sprintf("%X;name=value\r\n%s\r\n0\r\nTrailer: x\r\n\r\n", len(body), strings.Replace(body, "smuggled", "chunkeda", 1)), 201)
	b.ask("DELETE", badPath+"/chunkeda", "")

	conn, err := dialRaw(b.address)
	if b.report.check(err == nil, "H-506", "%v", err) {
		_, _ = conn.Write([]byte(get + host + "Connection: close\r\n\r\n"))
		response, err := conn.readResponse(2 * time.Minute)
		b.report.check(err == nil && response.status == 200, "H-506", "Connection: close: %v", err)
		b.report.check(conn.closedWithin(2*time.Minute), "H-506", "Connection: close: the connection stays open")
		conn.Close()
	}
	conn, err = dialRaw(b.address)
	if b.report.check(err == nil, "H-506", "%v", err) {
		want := configMapJSON("expected", "", "")
		_, _ = fmt.Fprintf(conn, "%sExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", post, len(want))
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second)) // RFC 9110: a client does not wait for ever either
		line, err := conn.reader.ReadString('\n')
		if err == nil {
			b.report.check(strings.HasPrefix(line, "HTTP/1.1 100") || strings.HasPrefix(line, "HTTP/1.1 417"), "H-506", "Expect: 100-continue: %q", line)
			_, _ = conn.reader.ReadString('\n')
		}
		_, _ = conn.Write([]byte(want))
		response, err := conn.readResponse(2 * time.Minute)
		b.report.check(err == nil && (response.status == 201 || response.status == 417), "H-506", "Expect: 100-continue: %v", err)
		conn.Close()
		b.ask("DELETE", badPath+"/expected", "")
	}
	b.refused("R-113", refusal{code: 404}, "GET", badPath+"/smuggled", "")
}

// halfClosed: peers that have said all they will say. What is whole is answered, what is not whole is never taken for a request, and every connection ends.
func (b *badInput) halfClosed() {
	head := " HTTP/1.1\r\nHost: " + b.address + "\r\n"
	body := configMapJSON("halfclosed", "", "")
	post := "POST " + badPath + head + jsonType + "\r\n"
	b.ask("DELETE", badPath+"/halfclosed", "")
	for _, row := range []struct {
		what, bytes string
		code        int // of the answer; 0: none, or a refusal
	}{
		{"a GET", "GET " + badPath + "/w" + head + "\r\n", 200},
		{"two GETs", strings.Repeat("GET "+badPath+"/w"+head+"\r\n", 2), 200},
		{"nothing", "", 0},
		{"half a request line", "GET " + badPath, 0},
		{"half a head", "GET " + badPath + "/w" + head, 0},
		{"half a body", post + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body[:len(body)/2]), 0},
		{"a body but its last byte", post + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body[:len(body)-1]), 0},
		{"chunks without the last one", post + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body), body), 0},
		{"chunks without the last line end", post + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n", len(body), body), 0},
		{"a watch", "GET " + badPath + "?watch=1&fieldSelector=metadata.name%3Dw" + head + "\r\n", 200},
	} {
		conn, err := dialRaw(b.address)
		if !b.report.check(err == nil, "H-611", "%s: %v", row.what, err) {
			return
		}
		_, _ = conn.Write([]byte(row.bytes))
		_ = conn.Conn.(*net.TCPConn).CloseWrite()
		response, err := conn.readHead(2 * time.Minute)
		if row.code != 0 {
			b.report.check(err == nil && response.status == row.code, "H-611", "%s and half-closed: %v %v", row.what, err, response)
		} else {
			b.report.check(err != nil || response.status >= 400, "H-611", "%s and half-closed was answered: %v", row.what, response)
		}
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
		_, err = io.Copy(io.Discard, conn.reader)
		timeout, is := err.(net.Error)
		b.report.check(!is || !timeout.Timeout(), "H-611", "%s and half-closed: the connection stays open", row.what)
		conn.Close()
	}
	b.refused("H-611", refusal{code: 404}, "GET", badPath+"/halfclosed", "")
	conn, err := dialRaw(b.address)
	if b.report.check(err == nil, "H-611", "%v", err) {
		_, _ = fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", post, len(body), body)
		_ = conn.Conn.(*net.TCPConn).CloseWrite()
		response, err := conn.readResponse(2 * time.Minute)
		b.report.check(err == nil && response.status == 201, "H-611", "a whole POST and half-closed: %v %v", err, response)
		conn.Close()
	}
	b.wants(200, "DELETE", badPath+"/halfclosed", "")
}

// pipelining: many requests in one write are answered in order, also around a write and a refusal.
func (b *badInput) pipelining() {
	conn, err := dialRaw(b.address)
	if !b.report.check(err == nil, "H-606", "%v", err) {
		return
	}
	defer conn.Close()
	request := func(method, target, body string) string {
		q := rawRequest{method: method, target: target}
		if body != "" {
			q.body = []byte(body)
			q.headers = []string{jsonType}
		}
		return string(q.bytes(b.address))
	}
	b.ask("DELETE", badPath+"/piped", "")
	var all strings.Builder
	want := []int{}
	for i := 0; i < 50; i++ {
		switch i % 5 {
		case 0:
			all.WriteString(request("GET", badPath+"/w", ""))
			want = append(want, 200)
		case 1:
			all.WriteString(request("GET", badPath+"/nope", ""))
			want = append(want, 404)
		case 2:
			all.WriteString(request("POST", badPath, configMapJSON("piped", "", `"i":"`+fmt.Sprint(i)+`"`)))
			want = append(want, 201)
		case 3:
			all.WriteString(request("GET", badPath+"/piped", ""))
			want = append(want, 200)
		case 4:
			all.WriteString(request("DELETE", badPath+"/piped", ""))
			want = append(want, 200)
		}
	}
	go func() { _, _ = conn.Write([]byte(all.String())) }()
	for i, code := range want {
		response, err := conn.readResponse(2 * time.Minute)
		if !b.report.check(err == nil, "H-606", "pipelined answer %d: %v", i, err) {
			return
		}
		b.report.check(response.status == code, "H-606", "pipelined answer %d: %d instead of %d", i, response.status, code)
		if i%5 == 3 {
			b.report.check(strings.Contains(string(response.body), fmt.Sprintf(`"i":"%d"`, i-1)), "H-606", "pipelined answer %d does not see the write before it: %.200q", i, response.body)
		}
	}
	// A request behind a watch waits for its end, or is never answered; the watch is unharmed.
	_, _ = conn.Write([]byte(request("GET", badPath+"?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dw", "") + request("GET", badPath+"/w", "")))
	response, err := conn.readResponse(2 * time.Minute)
	if b.report.check(err == nil && response.status == 200 && response.chunked, "H-606", "watch before a pipelined request: %v", err) {
		b.report.check(strings.HasPrefix(string(response.body), `{"type":"ADDED"`), "H-606", "watch before a pipelined request: %.100q", response.body)
		response, err = conn.readResponse(2 * time.Minute)
		b.report.check(err == nil && response.status == 200 && strings.Contains(string(response.body), `"ConfigMap"`), "H-606", "request pipelined behind a watch: %v", err)
	}
}

// randomBytes: mutated requests. Whatever the answer, the server lives, and answers are HTTP.
func (b *badInput) randomBytes(seed int64) {
	random := rand.New(rand.NewSource(seed))
	body := configMapJSON("never", "", "")
	samples := []string{
		"GET " + badPath + "?limit=2&labelSelector=a%3Db HTTP/1.1\r\nHost: " + b.address + "\r\nAccept: application/json\r\n\r\n",
		"POST " + badPath + "?dryRun=All HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\n\r\n" + body,
		"POST " + badPath + "?dryRun=All HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		"GET " + badPath + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan HTTP/1.1\r\nHost: x\r\n\r\n",
	}
	for i := 0; i < 300; i++ {
		bytes := []byte(samples[random.Intn(len(samples))])
		for n := 1 + random.Intn(4); n > 0; n-- {
			at := random.Intn(len(bytes))
			switch random.Intn(4) {
			case 0:
				bytes[at] = byte(random.Intn(256))
			case 1:
				bytes = append(bytes[:at], bytes[min(len(bytes), at+1+random.Intn(8)):]...)
			case 2:
				bytes = append(bytes[:at:at], append([]byte{byte(random.Intn(256))}, bytes[at:]...)...)
			case 3:
				bytes = bytes[:at+1]
			}
		}
		conn, err := dialRaw(b.address)
		if !b.report.check(err == nil, "alive", "after %d mutated requests: %v", i, err) {
			return
		}
		for rest := bytes; len(rest) > 0; {
			n := 1 + random.Intn(len(rest))
			if _, err := conn.Write(rest[:n]); err != nil {
				break
			}
			rest = rest[n:]
		}
		_ = conn.Conn.(*net.TCPConn).CloseWrite()
		response, err := conn.readHead(5 * time.Second)
		if err == nil {
			b.report.check(response.status >= 200 && response.status < 600 && response.status != 500, "H-101", "mutated request %q: status %d", bytes, response.status)
		}
		conn.Close()
	}
}

// slowClients open a request and never finish it.
func (b *badInput) slowClients(count int, deadline time.Duration) {
	heads := []string{"", "G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\nX: ", "POST " + badPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"POST " + badPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"}
	conns := []*rawConn{}
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	for i := 0; i < count; i++ {
		conn, err := dialRaw(b.address)
		if !b.report.check(err == nil, "H-603", "slow client %d: %v", i, err) {
			return
		}
		conns = append(conns, conn)
		_, _ = conn.Write([]byte(heads[i%len(heads)]))
	}
	var ended atomic.Int64
	started := time.Now()
	trickle := func(conn *rawConn, i int, until time.Duration) {
		for time.Since(started) < until {
			_ = conn.SetReadDeadline(time.Now().Add(900 * time.Millisecond))
			if _, err := conn.reader.ReadByte(); err != nil {
				if netError, ok := err.(net.Error); !ok || !netError.Timeout() {
					ended.Add(1)
					return
				}
			}
			if i%len(heads) != 0 { // the first kind never sends a byte: it is idle, not slow
				if _, err := conn.Write([]byte("x")); err != nil {
					ended.Add(1)
					return
				}
			}
		}
	}
	until := 2 * time.Second
	if deadline > 0 {
		until = deadline
	}
	var wg sync.WaitGroup
	for i, conn := range conns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			trickle(conn, i, until)
		}()
	}
	wg.Wait()
	b.report.figure("slowClientsEnded", ended.Load())
	if deadline > 0 {
		idle := (count + len(heads) - 1) / len(heads)
		b.report.check(int(ended.Load()) >= count-idle, "H-603", "%d of %d slow clients were ended within %v", ended.Load(), count-idle, deadline)
	}
}

// idleBytesMax is what an idle connection may cost the server, everything that a sanitizer adds included: without one it is a tenth of that.
const idleBytesMax = 32 << 10

// serverMemory is the resident memory of the server that was started with this program, where there is one.
func serverMemory() (bytes int64, known bool) {
	text, err := os.ReadFile("/proc/" + os.Getenv("SERVER_PID") + "/statm")
	if err != nil || os.Getenv("SERVER_PID") == "" {
		return 0, false
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0, false
	}
	return resident * int64(os.Getpagesize()), true
}

// idleConnections hold thousands of connections; the healthy client and new connections must not notice, and they cost little.
func (b *badInput) idleConnections(count int) {
	memory, isKnown := serverMemory()
	conns := make([]*rawConn, 0, count)
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	request := rawRequest{method: "GET", target: badPath + "/w"}.bytes(b.address)
	for i := 0; i < count; i++ {
		conn, err := dialRaw(b.address)
		if !b.report.check(err == nil, "H-611", "idle connection %d: %v", i, err) {
			return
		}
		conns = append(conns, conn)
		if i%10 == 0 { // some were used before
			_, _ = conn.Write(request)
			response, err := conn.readResponse(2 * time.Minute)
			b.report.check(err == nil && response.status == 200, "H-611", "request on connection %d: %v", i, err)
		}
	}
	b.report.figure("idleConnections", len(conns))
	if after, _ := serverMemory(); isKnown {
		b.report.figure("idleConnectionBytes", (after-memory)/int64(count))
		b.report.check(after-memory <= int64(count)*idleBytesMax, "H-611", "%d idle connections cost the server %d KiB", count, (after-memory)>>10)
	}
	before := b.healthy.count()
	b.report.check(b.healthy.await(before+20, healthyLatencyMax), "healthy", "with %d idle connections only %d events in %v", count, b.healthy.count()-before, healthyLatencyMax)
	// Every tenth still works.
	for i := 0; i < len(conns); i += 10 {
		_, _ = conns[i].Write(request)
		response, err := conns[i].readResponse(2 * time.Minute)
		b.report.check(err == nil && response.status == 200, "H-611", "idle connection %d, used again: %v", i, err)
	}
}

// unreadWatches: watch clients that never read, while many bytes of events are made. The healthy client is not delayed, and a
// client that reads gets everything.
func (b *badInput) unreadWatches(count, bytes int) {
	const size = 200 << 10
	path := fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", b.custom.resource.Group, b.custom.resource.Version, badNamespace, b.custom.resource.Resource)
	object := func(n int) string {
		return fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","metadata":{"name":"fat"},"spec":{"n":%d,"text":"%s"}}`, b.custom.resource.GroupVersion(), b.custom.kind, n, strings.Repeat("z", size))
	}
	b.ask("DELETE", path+"/fat", "")
	created := b.wants(201, "POST", path, object(0), jsonType)
	stuck := []*rawConn{}
	defer func() {
		for _, conn := range stuck {
			conn.Close()
		}
	}()
	for i := 0; i < count; i++ {
		conn, err := dialRaw(b.address)
		if !b.report.check(err == nil, "H-624", "watch client %d: %v", i, err) {
			return
		}
		stuck = append(stuck, conn)
		_, _ = conn.Write(rawRequest{method: "GET", target: path + "?watch=1&resourceVersion=" + text(revisionOf(created))}.bytes(b.address))
	}
	reader := b.open(path + "?watch=1&resourceVersion=" + text(revisionOf(created)))
	if reader == nil {
		return
	}
	defer func() { reader.close() }() // it may be another one by then
	rounds := bytes / size
	var wg sync.WaitGroup
	wg.Add(1)
	resumed := 0
	go func() {
		defer wg.Done()
		at := revisionOf(created)
		for n := 1; n <= rounds; {
			event, err := reader.next(2 * time.Minute)
			if err == errStreamEnded { // too slow: it ends cleanly, and can be resumed (design: never a gap)
				resumed++
				reader.close()
				if reader = b.open(path + "?watch=1&resourceVersion=" + text(at)); reader == nil {
					return
				}
				continue
			}
			if !b.report.check(err == nil, "H-624", "the client that reads: event %d: %v", n, err) {
				return
			}
			if !b.report.check(event.kind == "MODIFIED" && digNumber(event.object, "spec", "n") == int64(n), "H-624", "the client that reads: event %d is %s n=%v %.200s", n, event.kind, dig(event.object, "spec", "n"), event.raw) {
				return
			}
			at = revisionOf(event.object)
			n++
		}
	}()
	for n := 1; n <= rounds; n++ {
		body := fmt.Sprintf(`{"spec":{"n":%d}}`, n)
		response, err := b.client.do(rawRequest{method: "PATCH", target: path + "/fat", headers: []string{mergeType}, body: []byte(body)})
		if !b.report.check(err == nil && response.status == 200, "H-624", "write %d beside stuck watches: %v", n, err) {
			break
		}
	}
	wg.Wait()
	// What became of the stuck ones: ended by the server, or still open; what they read now is a prefix without a gap.
	ended := 0
	for i, conn := range stuck {
		s := &stream{conn: conn, events: make(chan streamEvent), ended: make(chan error, 1), quit: make(chan struct{})}
		head, err := conn.readHead(2 * time.Minute)
		if !b.report.check(err == nil && head.status == 200, "H-624", "stuck watch %d: %v", i, err) {
			continue
		}
		_ = conn.SetReadDeadline(time.Time{})
		go s.decode()
		n := int64(1)
		for n <= int64(rounds) {
			event, err := s.next(2 * time.Minute)
			if err == errNothing {
				b.report.violation("H-624", "stuck watch %d, reading again: nothing after event %d of %d, and no end", i, n-1, rounds)
				break
			}
			if err != nil {
				ended++
				break
			}
			if event.kind == "ERROR" {
				b.report.check(digNumber(event.object, "code") == 410, "H-624", "stuck watch %d: ERROR %.200s", i, event.raw)
				continue
			}
			if !b.report.check(digNumber(event.object, "spec", "n") == n, "H-624", "stuck watch %d: event n=%v instead of %d: a gap", i, dig(event.object, "spec", "n"), n) {
				break
			}
			n++
		}
		close(s.quit)
	}
	b.report.figure("unreadWatches", map[string]int{"clients": count, "endedByServer": ended, "readerResumed": resumed, "megabytes": bytes >> 20})
	b.wants(200, "DELETE", path+"/fat", "")
}
