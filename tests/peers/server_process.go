package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const stderrLinesKept = 60

// serverProcess is a vedette that we started ourselves, and may kill.
type serverProcess struct {
	command *exec.Cmd
	url     string
	http    string // of health and metrics, when it says so
	started time.Time
	ready   chan struct{} // closed when the ready line came
	exited  chan struct{} // closed after the process ended; then exit is set
	exit    error

	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed and replaced at each line
}

// startServer runs the program; it is ready when ready is closed.
func startServer(program string, args ...string) (*serverProcess, error) {
	s := &serverProcess{command: exec.Command(program, args...), started: time.Now(), ready: make(chan struct{}), exited: make(chan struct{}), changed: make(chan struct{})}
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := s.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		scanner := bufio.NewScanner(stderr)
		scanner.Buffer(nil, 1<<20)
		isReady := false
		for scanner.Scan() {
			line := scanner.Text()
			s.mu.Lock()
			s.lines = append(s.lines, line)
			if len(s.lines) > stderrLinesKept {
				s.lines = s.lines[1:]
			}
			close(s.changed)
			s.changed = make(chan struct{})
			s.mu.Unlock()
			if rest, found := strings.CutPrefix(line, "vedette: ready "); found && !isReady {
				isReady = true
				fields := strings.Fields(rest)
				s.url = fields[0]
				if fields[0] == "etcd" && len(fields) > 1 {
					s.url = fields[1]
				}
				if len(fields) > 3 && fields[2] == "http" {
					s.http = fields[3]
				}
				close(s.ready)
			}
		}
		s.exit = s.command.Wait()
		close(s.exited)
	}()
	return s, nil
}

func (s *serverProcess) stderr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// awaitStderr waits until the last lines of stderr fulfil a condition; false: patience is over, or the server has ended.
func (s *serverProcess) awaitStderr(patience time.Duration, isFulfilled func(string) bool) bool {
	end := time.After(patience)
	for {
		s.mu.Lock()
		text, changed := strings.Join(s.lines, "\n"), s.changed
		s.mu.Unlock()
		if isFulfilled(text) {
			return true
		}
		select {
		case <-changed:
		case <-s.exited:
			return isFulfilled(s.stderr())
		case <-end:
			return false
		}
	}
}

func (s *serverProcess) awaitReady(timeout time.Duration) (time.Duration, error) {
	select {
	case <-s.ready:
		return time.Since(s.started), nil
	case <-s.exited:
		return 0, fmt.Errorf("the server ended before it was ready: %v; its stderr:\n%s", s.exit, s.stderr())
	case <-time.After(timeout):
		return 0, fmt.Errorf("the server is not ready after %v; its stderr:\n%s", timeout, s.stderr())
	}
}

// kill is kill -9; it returns when the process is gone.
func (s *serverProcess) kill() {
	_ = s.command.Process.Kill()
	<-s.exited
}

// terminate is SIGTERM; the server must exit 0 within two minutes.
func (s *serverProcess) terminate() error {
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.exited:
		if s.exit != nil {
			return fmt.Errorf("after SIGTERM the server ended with %v; its stderr:\n%s", s.exit, s.stderr())
		}
		return nil
	case <-time.After(2 * time.Minute):
		s.kill()
		return fmt.Errorf("the server did not exit within two minutes of SIGTERM; its stderr:\n%s", s.stderr())
	}
}
