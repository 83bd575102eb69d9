package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A small HTTP/1.1 client that hides nothing: it sends exactly the given bytes and shows how the answer was framed.

type rawConn struct {
	net.Conn
	reader *bufio.Reader
}

type rawResponse struct {
	status  int
	proto   string
	header  textproto.MIMEHeader
	chunked bool
	length  int64 // -1: none given
	body    []byte
}

func dialRaw(address string) (*rawConn, error) {
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &rawConn{Conn: conn, reader: bufio.NewReaderSize(conn, 32<<10)}, nil
}

// addressOf turns http://host:port into host:port.
func addressOf(server string) (string, error) {
	parsed, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	if parsed.Scheme != "http" || parsed.Port() == "" {
		return "", fmt.Errorf("--server must look like http://HOST:PORT, not %q", server)
	}
	return parsed.Host, nil
}

// readHead reads status line and headers of the next answer; 1xx answers are skipped.
func (c *rawConn) readHead(timeout time.Duration) (*rawResponse, error) {
	_ = c.SetReadDeadline(time.Now().Add(timeout))
	for {
		reader := textproto.NewReader(c.reader)
		line, err := reader.ReadLine()
		if err != nil {
			return nil, err
		}
		response := &rawResponse{length: -1}
		fields := strings.SplitN(line, " ", 3)
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "HTTP/1.") {
			return nil, fmt.Errorf("not a status line: %.80q", line)
		}
		response.proto = fields[0]
		if response.status, err = strconv.Atoi(fields[1]); err != nil {
			return nil, fmt.Errorf("not a status line: %.80q", line)
		}
		if response.header, err = reader.ReadMIMEHeader(); err != nil {
			return nil, fmt.Errorf("headers: %w", err)
		}
		if response.status >= 100 && response.status < 200 && response.status != 101 {
			continue
		}
		response.chunked = strings.EqualFold(response.header.Get("Transfer-Encoding"), "chunked")
		if text := response.header.Get("Content-Length"); text != "" {
			if response.chunked {
				return nil, errors.New("answer has both Content-Length and Transfer-Encoding")
			}
			if response.length, err = strconv.ParseInt(text, 10, 64); err != nil {
				return nil, fmt.Errorf("Content-Length %q", text)
			}
		}
		return response, nil
	}
}

// nextChunk reads one chunk; an empty one is the end of the body.
func (c *rawConn) nextChunk() ([]byte, error) {
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return nil, unexpected(err)
	}
	if !strings.HasSuffix(line, "\r\n") {
		return nil, fmt.Errorf("chunk size line %.40q", line)
	}
	size, err := strconv.ParseUint(strings.TrimSuffix(line, "\r\n"), 16, 32)
	if err != nil {
		return nil, fmt.Errorf("chunk size line %.40q", line)
	}
	chunk := make([]byte, size+2)
	if _, err := io.ReadFull(c.reader, chunk); err != nil {
		return nil, unexpected(err)
	}
	if !bytes.HasSuffix(chunk, []byte("\r\n")) {
		return nil, fmt.Errorf("chunk of %d bytes does not end in CRLF", size)
	}
	return chunk[:size], nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (c *rawConn) readBody(response *rawResponse, head bool) error {
	switch {
	case head || response.status == 204 || response.status == 304:
	case response.chunked:
		for {
			chunk, err := c.nextChunk()
			if err != nil {
				return err
			}
			if len(chunk) == 0 {
				break
			}
			response.body = append(response.body, chunk...)
		}
	case response.length >= 0:
		response.body = make([]byte, response.length)
		if _, err := io.ReadFull(c.reader, response.body); err != nil {
			return unexpected(err)
		}
	default:
		body, err := io.ReadAll(c.reader)
		response.body = body
		return err
	}
	return nil
}

// readResponse reads a whole answer, with a deadline for all of it.
func (c *rawConn) readResponse(timeout time.Duration) (*rawResponse, error) {
	response, err := c.readHead(timeout)
	if err != nil {
		return nil, err
	}
	return response, c.readBody(response, false)
}

// closedWithin tells whether the server ends the connection; bytes that still come are dropped.
func (c *rawConn) closedWithin(timeout time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(timeout))
	_, err := io.Copy(io.Discard, c.reader)
	var netError net.Error
	return err == nil || !errors.As(err, &netError) || !netError.Timeout()
}

func (r *rawResponse) decode() (object, error) {
	body := r.body
	if r.header.Get("Content-Encoding") == "gzip" {
		reader, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		if body, err = io.ReadAll(reader); err != nil {
			return nil, err
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var decoded object
	if err := decoder.Decode(&decoded); err != nil {
		return nil, fmt.Errorf("body is not a JSON object: %w (%.120q)", err, body)
	}
	return decoded, nil
}

// rawClient sends single requests over kept connections of its own, one after the other.
type rawClient struct {
	address string
	conn    *rawConn
}

type rawRequest struct {
	method  string
	target  string
	headers []string // "Name: value"
	body    []byte
	timeout time.Duration
}

func (q rawRequest) bytes(address string) []byte {
	var head bytes.Buffer
	fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\n", q.method, q.target, address)
	for _, header := range q.headers {
		head.WriteString(header + "\r\n")
	}
	if q.body != nil {
		fmt.Fprintf(&head, "Content-Length: %d\r\n", len(q.body))
	}
	head.WriteString("\r\n")
	head.Write(q.body)
	return head.Bytes()
}

func (c *rawClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// do sends one request and reads the answer. A connection the server closed meanwhile is replaced once.
func (c *rawClient) do(request rawRequest) (*rawResponse, error) {
	if request.timeout == 0 {
		request.timeout = 20 * time.Second
	}
	for attempt := 0; ; attempt++ {
		reused := c.conn != nil
		if !reused {
			conn, err := dialRaw(c.address)
			if err != nil {
				return nil, err
			}
			c.conn = conn
		}
		_ = c.conn.SetWriteDeadline(time.Now().Add(request.timeout))
		_, writeErr := c.conn.Write(request.bytes(c.address))
		response, err := c.conn.readHead(request.timeout)
		if err == nil {
			err = c.conn.readBody(response, request.method == "HEAD")
		}
		if err == nil {
			if strings.EqualFold(response.header.Get("Connection"), "close") || writeErr != nil ||
				(response.length < 0 && !response.chunked && request.method != "HEAD" && response.status != 304) {
				c.close()
			}
			return response, nil
		}
		c.close()
		if !reused || attempt > 0 || response != nil {
			if writeErr != nil {
				err = fmt.Errorf("%w (and write: %v)", err, writeErr)
			}
			return nil, err
		}
	}
}

// streamEvent is one line of a watch.
type streamEvent struct {
	kind    string
	object  object
	raw     json.RawMessage
	arrived time.Time
}

func (e streamEvent) String() string {
	return fmt.Sprintf("%s %s rv=%s", e.kind, keyOf(digString(e.object, "metadata", "namespace"), digString(e.object, "metadata", "name")),
		digString(e.object, "metadata", "resourceVersion"))
}

func (e streamEvent) endsInitialEvents() bool {
	return e.kind == "BOOKMARK" && digString(e.object, "metadata", "annotations", "k8s.io/initial-events-end") == "true"
}

var (
	errStreamEnded = errors.New("watch ended with the zero chunk")
	errNothing     = errors.New("nothing arrived in time")
)

// stream is an open watch on a raw connection; a goroutine decodes, next() takes.
type stream struct {
	conn   *rawConn
	head   *rawResponse
	events chan streamEvent
	ended  chan error // one value: errStreamEnded or what broke the stream
	end    error
	quit   chan struct{}
}

type chunkReader struct {
	conn *rawConn
	rest []byte
}

func (r *chunkReader) Read(into []byte) (int, error) {
	if len(r.rest) == 0 {
		chunk, err := r.conn.nextChunk()
		if err != nil {
			return 0, err
		}
		if len(chunk) == 0 {
			return 0, errStreamEnded
		}
		r.rest = chunk
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// openStream starts a watch. A non-200 answer is read whole and returned with a nil stream.
func openStream(address, target string, headers ...string) (*stream, *rawResponse, error) {
	conn, err := dialRaw(address)
	if err != nil {
		return nil, nil, err
	}
	if _, err = conn.Write(rawRequest{method: "GET", target: target, headers: headers}.bytes(address)); err != nil {
		conn.Close()
		return nil, nil, err
	}
	head, err := conn.readHead(20 * time.Second)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	if head.status != 200 {
		err = conn.readBody(head, false)
		conn.Close()
		return nil, head, err
	}
	if !head.chunked {
		conn.Close()
		return nil, head, fmt.Errorf("GET %s: a watch must be chunked (R-632), headers: %v", target, head.header)
	}
	s := &stream{conn: conn, head: head, events: make(chan streamEvent), ended: make(chan error, 1), quit: make(chan struct{})}
	_ = conn.SetReadDeadline(time.Time{})
	go s.decode()
	return s, head, nil
}

func (s *stream) decode() {
	decoder := json.NewDecoder(&chunkReader{conn: s.conn})
	for {
		var line struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&line); err != nil {
			s.ended <- err
			return
		}
		event := streamEvent{kind: line.Type, raw: line.Object, arrived: time.Now()}
		inner := json.NewDecoder(bytes.NewReader(line.Object))
		inner.UseNumber()
		if err := inner.Decode(&event.object); err != nil {
			s.ended <- fmt.Errorf("event object %.100q: %w", line.Object, err)
			return
		}
		select {
		case s.events <- event:
		case <-s.quit:
			return
		}
	}
}

// next takes the next event; errStreamEnded, errNothing or what broke the stream otherwise.
func (s *stream) next(timeout time.Duration) (streamEvent, error) {
	if s.end != nil {
		return streamEvent{}, s.end
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case event := <-s.events:
		return event, nil
	case s.end = <-s.ended:
		return streamEvent{}, s.end
	case <-timer.C:
		return streamEvent{}, errNothing
	}
}

func (s *stream) close() {
	if s == nil {
		return
	}
	close(s.quit)
	s.conn.Close()
}
