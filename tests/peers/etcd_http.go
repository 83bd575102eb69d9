package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// httpSide is a client URL of one of the two servers.
type httpSide struct {
	name    string
	address string
	tls     *tls.Config // nil: plain text
}

func (s *httpSide) connect(protocols ...string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: ownPatience}
	if s.tls == nil {
		return dialer.Dial("tcp", s.address)
	}
	config := s.tls.Clone()
	config.NextProtos = protocols
	return tls.DialWithDialer(dialer, "tcp", s.address, config)
}

// What differs from run to run or from program to program by its nature.
var httpHeadersIgnored = map[string]bool{"Date": true}

func showAnswer(answer *http.Response, body []byte) string {
	var lines []string
	for name, values := range answer.Header {
		if !httpHeadersIgnored[name] {
			lines = append(lines, name+": "+strings.Join(values, ", "))
		}
	}
	sort.Strings(lines)
	return fmt.Sprintf("%s %d length %d close %v\n    %s\n    %q", answer.Proto, answer.StatusCode, answer.ContentLength, answer.Close, strings.Join(lines, "\n    "), body)
}

// sortChecks: etcd's checks come in the order of a map.
func sortChecks(body []byte) []byte {
	lines := strings.SplitAfter(string(body), "\n")
	checks := 0
	for checks < len(lines) && (strings.HasPrefix(lines[checks], "[+]") || strings.HasPrefix(lines[checks], "[-]")) {
		checks++
	}
	sort.Strings(lines[:checks])
	return []byte(strings.Join(lines, ""))
}

// ask sends bytes and reads as many answers as there are methods, then says how the connection stands.
func (s *httpSide) ask(request string, methods ...string) string {
	connection, err := s.connect()
	if err != nil {
		return "connect: " + err.Error()
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(ownPatience))
	if _, err = io.WriteString(connection, request); err != nil {
		return "write: " + err.Error()
	}
	reader := bufio.NewReader(connection)
	var said []string
	for _, method := range methods {
		answer, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			return strings.Join(append(said, "ends"), "\n  ")
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return "body: " + err.Error()
		}
		said = append(said, showAnswer(answer, sortChecks(body)))
	}
	return strings.Join(said, "\n  ")
}

// outcome: the status codes that come, and whether the server ends the connection. For what is no good request words are each server's own.
func (s *httpSide) outcome(request string) string {
	connection, err := s.connect()
	if err != nil {
		return "connect: " + err.Error()
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(ownPatience))
	_, _ = io.WriteString(connection, request)
	reader := bufio.NewReader(connection)
	said := ""
	for {
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			return said + "ends"
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		said += fmt.Sprintf("%d ", answer.StatusCode)
	}
}

type httpDiff struct {
	report *report
	sides  [2]*httpSide
}

func (d *httpDiff) same(rule, what string, fn func(s *httpSide) string) {
	etcd, ours := fn(d.sides[0]), fn(d.sides[1])
	d.report.check(etcd == ours, rule, "%s\n  etcd:    %s\n  vedette: %s", cut(what), cut(etcd), cut(ours))
}

func (d *httpDiff) request(rule, method, target string, headers ...string) {
	text := method + " " + target + " HTTP/1.1\r\nHost: test\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
	d.same(rule, method+" "+target, func(s *httpSide) string { return s.ask(text, method) })
}

var httpPaths = []string{
	"/health", "/health?serializable=true", "/health?exclude=NOSPACE", "/health?exclude=CORRUPT", "/health?exclude=NOSPACE&exclude=CORRUPT", "/health?exclude=",
	"/health?exclude=%4eOSPACE", "/health?exclude=NOSPACE;x", "/health?ex%63lude=NOSPACE", "/health?x=1&exclude=NOSPACE",
	"/livez", "/livez?verbose", "/livez?verbose=0", "/livez?exclude=serializable_read", "/livez?exclude=serializable_read&verbose", "/livez?exclude=nothing&verbose",
	"/livez/serializable_read", "/livez/serializable_read?verbose", "/livez/serializable_read?verbose&exclude=serializable_read", "/livez/data_corruption", "/livez/",
	"/readyz", "/readyz?verbose", "/readyz?verbose&exclude=data_corruption", "/readyz?exclude=data_corruption&exclude=linearizable_read&verbose",
	"/readyz?exclude=data%5fcorruption&verbose", "/readyz/data_corruption?verbose", "/readyz/serializable_read?verbose", "/readyz/linearizable_read?verbose",
	"/readyz/non_learner?verbose", "/readyz/nothing", "/readyz/data_corruption/x",
	"/version", "/version?x", "/version/", "/%76ersion", "/vers%69on", "/livez%2fserializable_read", "/", "/nothing", "/nothing%20here", "/Health",
	"//health", "/x/../health", "/x/../health?a=b&c", "/./version", "/health/.", "/..", "//", "/x//y/?q", "/a%20b//c", "/%41//b", "//version?<>&\"'", "/x/..//../y/",
	"http://elsewhere/version", "/%00", "/health?%zz", "/health?exclude=%zz",
}

func (d *httpDiff) paths(rule string) {
	for _, path := range httpPaths {
		d.request(rule, "GET", path)
	}
}

func (d *httpDiff) methods() {
	for _, path := range []string{"/health", "/version", "/livez", "/readyz/non_learner", "/nothing", "//health", "/x/../nothing/"} {
		for _, method := range []string{"HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO", "get"} {
			d.request("E-153", method, path)
		}
	}
	d.request("E-153", "OPTIONS", "*")
	d.request("E-153", "OPTIONS", "/v3/kv/range", "Origin: http://example.com", "Access-Control-Request-Method: POST")
	d.request("E-153", "CONNECT", "/health")
	for _, more := range []string{"Connection: close", "Connection: keep-alive", "Connection: x, Close", "Origin: http://example.com", "Accept: application/json",
		"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", "Range: bytes=0-1", "If-None-Match: *"} {
		d.request("E-153", "GET", "/version", more)
	}
}

// metrics: the body is each server's own; so only that it is one, for any method.
func (d *httpDiff) metrics() {
	for _, method := range []string{"GET", "POST", "OPTIONS"} {
		d.same("E-153", method+" /metrics", func(s *httpSide) string {
			connection, err := s.connect()
			if err != nil {
				return err.Error()
			}
			defer connection.Close()
			_ = connection.SetDeadline(time.Now().Add(ownPatience))
			_, _ = io.WriteString(connection, method+" /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			answer, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method})
			if err != nil {
				return err.Error()
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				return err.Error()
			}
			kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), "; escaping") // one of client_golang's own, for its own names
			return fmt.Sprint(answer.StatusCode, kind, answer.Header.Get("Access-Control-Allow-Origin"), bytes.Contains(body, []byte("\netcd_server_has_leader 1\n")), len(body) > 0)
		})
	}
}

// sequences of requests on one connection.
func (d *httpDiff) sequences() {
	one := "GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, c := range []struct {
		text    string
		methods []string
	}{
		{strings.Repeat(one, 20), []string{"GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET"}},
		{"HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n" + one, []string{"HEAD", "GET"}},
		{"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + one, []string{"POST", "GET"}},
		{"POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + one, []string{"POST", "GET"}},
		{"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200000) + one, []string{"POST", "GET"}},
		{"GET /version HTTP/1.0\r\n\r\n" + one, []string{"GET", "GET"}},
		{"GET /version HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + one, []string{"GET", "GET"}},
		{"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + one, []string{"GET", "GET"}},
	} {
		d.same("E-152", cut(c.text), func(s *httpSide) string { return s.ask(c.text, c.methods...) })
	}
}

// malformed: answered or cut as etcd does. Where we are stricter on purpose (bare LF, a blank before the colon, HTTP/1.7, more than 16 KiB of head) is not here.
func (d *httpDiff) malformed() {
	requests := []string{
		"GET /version HTTP/1.1\r\n\r\n",
		"GET /version HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"GET /version HTTP/1.1\r\nHost: x\r\nX: \x01\r\n\r\n",
		"GET ?x HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
		"POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
		"POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\n",
		"PRI * HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /% HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /health% HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /version HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 2<<20) + "\r\n\r\n",
	}
	if d.sides[0].tls == nil {
		// The first line decides; over TLS whatever is no request hears so.
		requests = append(requests, "hello\r\n", "GET /version\r\n", "GET /version HTTP/2.0\r\nHost: x\r\n\r\n", "\r\nGET /version HTTP/1.1\r\nHost: x\r\n\r\n",
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", "GET  /version HTTP/1.1\r\nHost: x\r\n\r\n", "GET /"+strings.Repeat("a", 5000)+" HTTP/1.1\r\nHost: x\r\n\r\n")
	} else {
		requests = append(requests, "hello\r\n\r\n", "GET /version\r\n\r\n")
	}
	for _, text := range requests {
		d.same("E-152", text, func(s *httpSide) string { return s.outcome(text) })
	}
}

// handshakes: which protocol is agreed on, and whether anybody without a certificate gets further.
func (d *httpDiff) handshakes() {
	for _, offered := range [][]string{nil, {"h2"}, {"http/1.1"}, {"h2", "http/1.1"}, {"http/1.1", "h2"}, {"http/1.0", "http/1.1"}, {"http/1.0"}, {"spdy/3"}} {
		d.same("E-152", fmt.Sprint("ALPN ", offered), func(s *httpSide) string {
			connection, err := s.connect(offered...)
			if err != nil {
				return "none"
			}
			defer connection.Close()
			return "agreed on " + connection.(*tls.Conn).ConnectionState().NegotiatedProtocol
		})
	}
	for _, path := range []string{"/health", "/version", "/metrics", "/livez", "/readyz"} {
		d.same("E-153", "without a certificate: "+path, func(s *httpSide) string {
			config := s.tls.Clone()
			config.Certificates = nil
			bare := &httpSide{s.name, s.address, config}
			if said := bare.outcome("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); said == "ends" || strings.HasPrefix(said, "connect:") {
				return "refused"
			} else {
				return said
			}
		})
	}
	d.same("E-152", "plain text", func(s *httpSide) string {
		return (&httpSide{s.name, s.address, nil}).outcome("GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
	})
}

// overHTTP2: what is no call is a request, as Prometheus and curl make it.
func (d *httpDiff) overHTTP2() {
	for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS", "FOO"} {
		for _, path := range []string{"/health", "/version?x=y", "/readyz?verbose", "/livez/serializable_read", "/nothing", "//health"} {
			d.same("E-152", method+" "+path+" over HTTP/2", func(s *httpSide) string {
				transport := &http2.Transport{TLSClientConfig: s.tls}
				defer transport.CloseIdleConnections()
				var content io.Reader
				if method == "POST" {
					content = strings.NewReader("body")
				}
				request, err := http.NewRequest(method, "https://"+s.address+path, content)
				if err != nil {
					return err.Error()
				}
				answer, err := transport.RoundTrip(request)
				if err != nil {
					return err.Error()
				}
				defer answer.Body.Close()
				body, err := io.ReadAll(answer.Body)
				if err != nil {
					return err.Error()
				}
				return showAnswer(answer, sortChecks(body))
			})
		}
	}
}

// alarm switches one on or off in both servers.
func (d *httpDiff) alarm(action pb.AlarmRequest_AlarmAction, kind pb.AlarmType) {
	for _, s := range d.sides {
		transport := insecure.NewCredentials()
		if s.tls != nil {
			transport = credentials.NewTLS(s.tls)
		}
		connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(transport))
		if err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), ownPatience)
			_, err = pb.NewMaintenanceClient(connection).Alarm(ctx, &pb.AlarmRequest{Action: action, Alarm: kind, MemberID: 1})
			cancel()
			connection.Close()
		}
		d.report.check(err == nil, "E-153", "%s: alarm %v: %v", s.name, kind, err)
	}
}

// runEtcdHTTP: ETCD_ENDPOINTS names the real one, ETCD_CACERT, ETCD_CERT and ETCD_KEY its certificates if it has any.
func runEtcdHTTP(args []string) int {
	flags, _, _ := newFlags("etcd-http")
	program := flags.String("program", "", "the vedette to start")
	_ = flags.Parse(args)
	real := os.Getenv("ETCD_ENDPOINTS")
	if *program == "" || real == "" {
		fmt.Fprintln(os.Stderr, "usage: peers etcd-http --program VEDETTE, with ETCD_ENDPOINTS")
		return 2
	}
	r := newReport("etcd-http")
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "peers etcd-http:", err)
		return 1
	}
	arguments := []string{"etcd", "--listen", "127.0.0.1:0", "--memory"}
	var config *tls.Config
	if ca := os.Getenv("ETCD_CACERT"); ca != "" {
		pair, err := tls.LoadX509KeyPair(os.Getenv("ETCD_CERT"), os.Getenv("ETCD_KEY"))
		if err != nil {
			return fail(err)
		}
		pem, err := os.ReadFile(ca)
		if err != nil {
			return fail(err)
		}
		config = &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
		config.RootCAs.AppendCertsFromPEM(pem)
		arguments = append(arguments, "--cert-file", os.Getenv("ETCD_CERT"), "--key-file", os.Getenv("ETCD_KEY"), "--trusted-ca-file", ca, "--client-cert-auth")
	}
	server, err := startServer(*program, arguments...)
	if err == nil {
		_, err = server.awaitReady(ownPatience)
	}
	if err != nil {
		return fail(err)
	}
	real = strings.TrimPrefix(strings.TrimPrefix(strings.Split(real, ",")[0], "http://"), "https://")
	d := &httpDiff{report: r, sides: [2]*httpSide{{"etcd", real, config}, {"vedette", server.url, config}}}
	// etcd knows its cluster's version and its storage's only some seconds after its start.
	pollUntil(ownPatience, func() bool {
		said := d.sides[0].ask("GET /version HTTP/1.1\r\nHost: x\r\n\r\n", "GET")
		return !strings.Contains(said, "not_decided") && strings.Contains(said, `storage\":\"3.7`)
	})
	d.paths("E-153")
	d.methods()
	d.metrics()
	d.sequences()
	d.malformed()
	if config != nil {
		d.handshakes()
		d.overHTTP2()
	}
	for _, kind := range []pb.AlarmType{pb.AlarmType_NOSPACE, pb.AlarmType_CORRUPT} {
		d.alarm(pb.AlarmRequest_ACTIVATE, kind)
		d.paths("E-153")
		d.alarm(pb.AlarmRequest_DEACTIVATE, kind)
	}
	d.paths("E-153")
	if err := server.terminate(); err != nil {
		r.violation("E-153", "%v", err)
	}
	if config == nil {
		apart, err := startServer(*program, "etcd", "--listen", "127.0.0.1:0", "--memory", "--listen-client-http-urls", "http://127.0.0.1:0")
		if err == nil {
			_, err = apart.awaitReady(ownPatience)
		}
		if err != nil {
			return fail(err)
		}
		said := (&httpSide{"apart", apart.url, nil}).outcome("GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
		r.check(said == "ends", "E-152", "with --listen-client-http-urls the port for clients answers a request: %s", said)
		if err := apart.terminate(); err != nil {
			r.violation("E-152", "%v", err)
		}
	}
	return r.finish()
}
