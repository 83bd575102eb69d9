package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// etcdCluster is a real etcd of one or more members that we started ourselves, on free ports of 127.0.0.1 with its data in a
// temporary directory, and may kill, freeze and start again. Safe for use by many goroutines: commands are carried out one by one.
type etcdCluster struct {
	options etcdOptions
	dir     string
	certs   *testCertificates // nil: plain
	http    *http.Client
	members []*etcdMember

	mu sync.Mutex // held by one command at a time
}

type etcdOptions struct {
	program string   // path of etcd
	count   int      // members
	flags   []string // further flags of each member
	tls     bool
	proxy   bool // a faultProxy in front of each member's client port
	seed    int64
}

type etcdMember struct {
	name      string
	client    int // ports
	peer      int
	dir       string
	proxy     *faultProxy // nil: none
	arguments []string

	command *exec.Cmd     // nil: not running
	exited  chan struct{} // closed when it is gone
	paused  bool
	log     *os.File
}

var (
	errSkip  = errors.New("skipped")
	errEnded = errors.New("ended by itself")
)

// findEtcd returns the program of that version ("3.7", built beside this one; "3.4", Debian's). An error that is errSkip: not here.
func findEtcd(version string) (string, error) {
	beside := func(name string) string {
		self, err := os.Executable()
		if err != nil {
			return name
		}
		return filepath.Join(filepath.Dir(self), name)
	}
	switch version {
	case "3.7":
		program := os.Getenv("ETCD_PROGRAM")
		if program == "" {
			program = beside("etcd")
		}
		if _, err := os.Stat(program); err != nil {
			return "", fmt.Errorf("%w: no etcd 3.7 at %s (tests/integration/build-peers.sh builds it)", errSkip, program)
		}
		return program, nil
	case "3.4":
		const program = "/usr/bin/etcd"
		out, err := exec.Command(program, "--version").Output()
		if err != nil || !strings.HasPrefix(string(out), "etcd Version: 3.4.") {
			return "", fmt.Errorf("%w: no etcd 3.4 at %s (Debian's package etcd-server)", errSkip, program)
		}
		return program, nil
	}
	return "", fmt.Errorf("etcd %q is not known here: 3.7 or 3.4", version)
}

// freePort finds a port below those that outgoing connections take: a member that is down keeps its port that way.
func freePort(taken map[int]bool) (int, error) {
	for range 1000 {
		port := 12000 + rand.Intn(20000)
		if taken[port] {
			continue
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		listener.Close()
		taken[port] = true
		return port, nil
	}
	return 0, errors.New("no free port")
}

// startEtcd starts all members and waits until they serve. A port that was free a moment ago may have been taken since: then again, with others.
func startEtcd(options etcdOptions) (c *etcdCluster, err error) {
	for range 3 {
		if c, err = tryEtcd(options); !errors.Is(err, errEnded) {
			break
		}
	}
	return c, err
}

func tryEtcd(options etcdOptions) (*etcdCluster, error) {
	dir, err := os.MkdirTemp("", "vedette-etcd-")
	if err != nil {
		return nil, err
	}
	c := &etcdCluster{options: options, dir: dir, http: &http.Client{Timeout: 3 * time.Second}}
	scheme := "http"
	if options.tls {
		scheme = "https"
		if c.certs, err = makeTestCertificates(filepath.Join(dir, "tls")); err != nil {
			c.remove()
			return nil, err
		}
		c.http.Transport = &http.Transport{TLSClientConfig: c.certs.client.Clone()}
	}
	taken := map[int]bool{}
	var initial []string
	for i := range options.count {
		m := &etcdMember{name: fmt.Sprintf("m%d", i), dir: filepath.Join(dir, fmt.Sprintf("m%d", i))}
		for _, port := range []*int{&m.client, &m.peer} {
			if *port, err = freePort(taken); err != nil {
				c.remove()
				return nil, err
			}
		}
		if options.proxy {
			if m.proxy, err = newFaultProxy(fmt.Sprintf("127.0.0.1:%d", m.client), options.seed+int64(i)); err != nil {
				c.remove()
				return nil, err
			}
		}
		initial = append(initial, fmt.Sprintf("%s=http://127.0.0.1:%d", m.name, m.peer))
		c.members = append(c.members, m)
	}
	is34 := strings.HasPrefix(etcdVersion(options.program), "3.4.")
	for _, m := range c.members {
		client := fmt.Sprintf("%s://127.0.0.1:%d", scheme, m.client)
		peer := fmt.Sprintf("http://127.0.0.1:%d", m.peer)
		m.arguments = []string{"--name", m.name, "--data-dir", m.dir, "--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", strings.Join(initial, ","),
			"--initial-cluster-token", filepath.Base(dir)}
		if is34 {
			m.arguments = append(m.arguments, "--experimental-watch-progress-notify-interval", "1s", "--logger", "zap")
		} else {
			// A killed process loses nothing that it wrote: only a machine that stops would.
			m.arguments = append(m.arguments, "--watch-progress-notify-interval", "1s", "--unsafe-no-fsync")
		}
		if options.count == 1 {
			m.arguments = append(m.arguments, "--heartbeat-interval", "10", "--election-timeout", "100")
		}
		if options.tls {
			m.arguments = append(m.arguments, "--cert-file", c.certs.certFile, "--key-file", c.certs.keyFile, "--trusted-ca-file", c.certs.caFile,
				"--client-cert-auth")
		}
		m.arguments = append(m.arguments, options.flags...)
	}
	for _, m := range c.members {
		if err := c.startMember(m); err != nil {
			c.stop()
			return nil, err
		}
	}
	if err := c.awaitHealthy(300 * time.Second); err != nil {
		logs := c.logTails(15)
		c.stop()
		return nil, fmt.Errorf("%w\n%s", err, logs)
	}
	return c, nil
}

func etcdVersion(program string) string {
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(first, "etcd Version: ")
}

func (c *etcdCluster) remove() {
	for _, m := range c.members {
		if m.proxy != nil {
			m.proxy.close()
		}
	}
	_ = os.RemoveAll(c.dir)
}

// stop kills what runs and removes everything.
func (c *etcdCluster) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		m.kill(syscall.SIGKILL)
	}
	c.remove()
}

func (c *etcdCluster) startMember(m *etcdMember) error {
	if m.command != nil {
		select {
		case <-m.exited: // it ended by itself
		default:
			return fmt.Errorf("%s is running", m.name)
		}
	}
	if m.log == nil {
		log, err := os.OpenFile(m.dir+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		m.log = log
	}
	command := exec.Command(c.options.program, m.arguments...)
	command.Stdout, command.Stderr = m.log, m.log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// etcd takes the environment's ETCD_... for flags; ours are for its clients.
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "ETCD_") && !strings.HasPrefix(entry, "ETCDCTL") {
			command.Env = append(command.Env, entry)
		}
	}
	if err := command.Start(); err != nil {
		return err
	}
	m.command, m.exited, m.paused = command, make(chan struct{}), false
	go func(exited chan struct{}) {
		_ = command.Wait()
		close(exited)
	}(m.exited)
	return nil
}

func (m *etcdMember) running() bool {
	if m.command == nil {
		return false
	}
	select {
	case <-m.exited:
		return false
	default:
		return true
	}
}

// kill sends the signal and waits until the process is gone.
func (m *etcdMember) kill(signal syscall.Signal) {
	if m.command == nil {
		return
	}
	if m.paused {
		_ = m.command.Process.Signal(syscall.SIGCONT)
	}
	_ = m.command.Process.Signal(signal)
	<-m.exited
	m.command, m.paused = nil, false
}

func (m *etcdMember) url(c *etcdCluster, direct bool) string {
	scheme := "http"
	if c.certs != nil {
		scheme = "https"
	}
	if m.proxy != nil && !direct {
		return scheme + "://" + m.proxy.address()
	}
	return fmt.Sprintf("%s://127.0.0.1:%d", scheme, m.client)
}

// endpoints are the URLs of all members: through their proxies when there are any, unless direct.
func (c *etcdCluster) endpoints(direct bool) []string {
	var urls []string
	for _, m := range c.members {
		urls = append(urls, m.url(c, direct))
	}
	return urls
}

func (c *etcdCluster) ask(m *etcdMember, method, path, body string, answer any) error {
	request, err := http.NewRequest(method, m.url(c, true)+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of %s: %s %s", path, m.name, response.Status, bytes.TrimSpace(text))
	}
	return json.Unmarshal(text, answer)
}

// memberStatus asks one member who it is and who leads ("0": nobody).
func (c *etcdCluster) memberStatus(m *etcdMember) (id, leader string, err error) {
	var answer struct {
		Header struct {
			MemberID string `json:"member_id"`
		}
		Leader string
	}
	err = c.ask(m, http.MethodPost, "/v3/maintenance/status", "{}", &answer)
	return answer.Header.MemberID, answer.Leader, err
}

// leader finds the member that leads, as the members that run see it, and agree.
func (c *etcdCluster) leader() (int, error) {
	found := ""
	ids := map[string]int{}
	for i, m := range c.members {
		if !m.running() || m.paused {
			continue
		}
		id, leader, err := c.memberStatus(m)
		if err != nil {
			return 0, err
		}
		ids[id] = i
		if leader == "" || leader == "0" {
			return 0, fmt.Errorf("%s knows no leader", m.name)
		}
		if found != "" && leader != found {
			return 0, errors.New("the members do not agree who leads")
		}
		found = leader
	}
	if i, ok := ids[found]; ok {
		return i, nil
	}
	return 0, errors.New("nobody leads who runs")
}

// awaitHealthy waits until each member that should run answers a linearizable read and all agree on a leader.
func (c *etcdCluster) awaitHealthy(timeout time.Duration) error {
	var err error
	pollUntil(timeout, func() bool { err = c.healthy(); return err == nil || errors.Is(err, errEnded) })
	if err != nil {
		return fmt.Errorf("etcd is not healthy after %v: %w", timeout, err)
	}
	return nil
}

func (c *etcdCluster) healthy() error {
	for _, m := range c.members {
		if m.command == nil || m.paused {
			continue
		}
		if !m.running() {
			return fmt.Errorf("%s %w: %v", m.name, errEnded, m.command.ProcessState)
		}
		var answer struct{ Health string }
		if err := c.ask(m, http.MethodGet, "/health", "", &answer); err != nil {
			// A member with an alarm serves reads all the same.
			if !strings.Contains(err.Error(), "ALARM") {
				return err
			}
		} else if answer.Health != "true" {
			return fmt.Errorf("%s says that it is not healthy", m.name)
		}
	}
	_, err := c.leader()
	return err
}

func (c *etcdCluster) logTails(lines int) string {
	var text strings.Builder
	for _, m := range c.members {
		all, err := os.ReadFile(m.dir + ".log")
		if err != nil {
			continue
		}
		rows := strings.Split(strings.TrimSpace(string(all)), "\n")
		if len(rows) > lines {
			rows = rows[len(rows)-lines:]
		}
		fmt.Fprintf(&text, "--- the last lines of %s:\n%s\n", m.name, strings.Join(rows, "\n"))
	}
	return text.String()
}

// chosen are the members that a word names: an index, "all", "leader", "follower" (one of them) or "followers".
func (c *etcdCluster) chosen(word string) ([]*etcdMember, error) {
	switch word {
	case "all":
		return c.members, nil
	case "leader", "follower", "followers":
		leader := -1
		var err error
		if !pollUntil(5*time.Minute, func() bool { leader, err = c.leader(); return err == nil }) {
			return nil, err
		}
		var members []*etcdMember
		for i, m := range c.members {
			if (i == leader) == (word == "leader") && m.running() && !m.paused {
				members = append(members, m)
			}
		}
		if word == "follower" && len(members) > 1 {
			members = members[:1]
		}
		if len(members) == 0 {
			return nil, errors.New("there is no follower")
		}
		return members, nil
	}
	i, err := strconv.Atoi(word)
	if err != nil || i < 0 || i >= len(c.members) {
		return nil, fmt.Errorf("which member is %q? 0 to %d, all, leader, follower or followers", word, len(c.members)-1)
	}
	return c.members[i : i+1], nil
}

// obey carries out one command and returns the answer:
//
//	members, endpoints [direct]   how many members there are; their URLs
//	leader                        the index of who leads
//	state                         one word for each member: running, paused or down
//	kill WHICH                    kill -9, and waits until it is gone; WHICH: see chosen
//	stop WHICH                    SIGTERM, and waits
//	start WHICH                   starts what is down; does not wait
//	restart WHICH                 kill -9 and start at once
//	pause WHICH, resume WHICH     SIGSTOP, SIGCONT
//	wait                          until all that run serve and agree on a leader
//	wipe WHICH                    removes the data of what is down (one member: a new etcd)
//	proxy WHICH COMMAND...        to the proxies in front of members (see faultProxy); WHICH is an index or all
//
// The answer of kill, stop, restart, pause, resume names the members that it hit.
func (c *etcdCluster) obey(words []string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch words[0] {
	case "members":
		return strconv.Itoa(len(c.members)), nil
	case "endpoints":
		return strings.Join(c.endpoints(len(words) > 1 && words[1] == "direct"), ","), nil
	case "leader":
		members, err := c.chosen("leader")
		if err != nil {
			return "", err
		}
		return strings.TrimPrefix(members[0].name, "m"), nil
	case "state":
		var states []string
		for _, m := range c.members {
			switch {
			case !m.running():
				states = append(states, "down")
			case m.paused:
				states = append(states, "paused")
			default:
				states = append(states, "running")
			}
		}
		return strings.Join(states, " "), nil
	case "wait":
		return "", c.awaitHealthy(5 * time.Minute)
	case "proxy":
		return c.obeyProxy(words)
	case "kill", "stop", "start", "restart", "pause", "resume", "wipe":
	default:
		return "", fmt.Errorf("no such command: %q", strings.Join(words, " "))
	}
	if len(words) != 2 {
		return "", fmt.Errorf("usage: %s WHICH", words[0])
	}
	members, err := c.chosen(words[1])
	if err != nil {
		return "", err
	}
	var hit []string
	for _, m := range members {
		if err := c.apply(words[0], m); err != nil {
			return "", err
		}
		hit = append(hit, strings.TrimPrefix(m.name, "m"))
	}
	return strings.Join(hit, " "), nil
}

func (c *etcdCluster) apply(verb string, m *etcdMember) error {
	switch verb {
	case "kill":
		m.kill(syscall.SIGKILL)
	case "stop":
		m.kill(syscall.SIGTERM)
	case "start":
		if m.running() {
			return nil
		}
		return c.startMember(m)
	case "restart":
		m.kill(syscall.SIGKILL)
		return c.startMember(m)
	case "pause", "resume":
		if !m.running() {
			return fmt.Errorf("%s is not running", m.name)
		}
		signal := syscall.SIGSTOP
		if verb == "resume" {
			signal = syscall.SIGCONT
		}
		m.paused = verb == "pause"
		return m.command.Process.Signal(signal)
	case "wipe":
		if m.running() {
			return fmt.Errorf("%s is running", m.name)
		}
		return os.RemoveAll(m.dir)
	}
	return nil
}

func (c *etcdCluster) obeyProxy(words []string) (string, error) {
	if len(words) < 3 {
		return "", errors.New("usage: proxy WHICH COMMAND...")
	}
	members, err := c.chosen(words[1])
	if err != nil {
		return "", err
	}
	var answers []string
	for _, m := range members {
		if m.proxy == nil {
			return "", errors.New("this etcd was started without --proxy")
		}
		answer, err := m.proxy.obey(words[2:])
		if err != nil {
			return "", err
		}
		if answer != "" {
			answers = append(answers, answer)
		}
	}
	return strings.Join(answers, ", "), nil
}

// clientTLS is what clients of this cluster must use; nil: plain.
func (c *etcdCluster) clientTLS() *tls.Config {
	if c.certs == nil {
		return nil
	}
	return c.certs.client.Clone()
}
