package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// keeper has the server run, kills it and starts it again. One caller at a time.
type keeper struct {
	program   string
	arguments []string
	kills     int
	err       error // of a restart

	command *exec.Cmd
	exited  chan struct{}
}

func (k *keeper) start() error {
	command := exec.Command(k.program, k.arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := command.StderrPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	ready, exited, said := make(chan struct{}), make(chan struct{}), make(chan string, 1)
	go func() {
		var lines []string
		isReady := false
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			lines = append(lines, scanner.Text())
			if strings.HasPrefix(scanner.Text(), "vedette: ready ") && !isReady {
				isReady = true
				close(ready)
			}
		}
		_ = command.Wait()
		said <- strings.Join(lines[max(0, len(lines)-20):], "\n")
		close(exited)
	}()
	select {
	case <-ready:
	case <-exited:
		return fmt.Errorf("the server ended before it was ready: %v\n%s", command.ProcessState, <-said)
	case <-time.After(patience):
		return fmt.Errorf("the server is not ready after %v", patience)
	}
	k.command, k.exited = command, exited
	return nil
}

func (k *keeper) kill() {
	_ = k.command.Process.Kill()
	<-k.exited
}

func (k *keeper) restart() {
	k.kill()
	k.kills++
	if err := k.start(); err != nil && k.err == nil {
		k.err = err
	}
}
