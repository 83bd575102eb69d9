package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// Control is a loopback port that takes commands, one a line, and answers each with one line: "ok", "ok ANSWER" or "error WHY".
// Simple enough for a shell, for C (tests/support/control.h) and for Go.

func answerCommands(scanner *bufio.Scanner, out io.Writer, obey func(words []string) (string, error)) {
	for scanner.Scan() {
		words := strings.Fields(scanner.Text())
		if len(words) == 0 {
			continue
		}
		answer, err := obey(words)
		switch {
		case err != nil:
			fmt.Fprintf(out, "error %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		case answer == "":
			fmt.Fprintln(out, "ok")
		default:
			fmt.Fprintf(out, "ok %s\n", answer)
		}
	}
}

// serveControl answers commands until the listener is closed. obey may be called by several connections at once.
func serveControl(obey func(words []string) (string, error)) (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				answerCommands(bufio.NewScanner(conn), conn, obey)
			}()
		}
	}()
	return listener, nil
}

// askControl sends one command and returns its answer.
func askControl(address, command string, timeout time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if _, err := fmt.Fprintln(conn, command); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("no answer to %q: %w", command, err)
	}
	line = strings.TrimSuffix(line, "\n")
	if rest, found := strings.CutPrefix(line, "ok"); found {
		return strings.TrimPrefix(rest, " "), nil
	}
	return "", fmt.Errorf("%s", strings.TrimPrefix(line, "error "))
}

// runControl is `peers control COMMAND...`: one command to $CONTROL.
func runControl(args []string) int {
	address := os.Getenv("CONTROL")
	if address == "" || len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: CONTROL=HOST:PORT peers control COMMAND...")
		return 2
	}
	answer, err := askControl(address, strings.Join(args, " "), 5*time.Minute)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers control:", err)
		return 1
	}
	if answer != "" {
		fmt.Println(answer)
	}
	return 0
}
