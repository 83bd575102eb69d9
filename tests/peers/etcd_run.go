package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const exitSkipped = 77

type flagList []string

func (l *flagList) String() string { return strings.Join(*l, " ") }
func (l *flagList) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// runEtcd starts an etcd, runs a command with it, and ends both. Exits as the command did; 77 when that etcd is not here.
func runEtcd(args []string) int {
	flags, verbose, seed := newFlags("etcd-run")
	version := flags.String("version", "3.7", "of etcd: 3.7, or 3.4 (Debian's)")
	members := flags.Int("members", 1, "of the cluster")
	withTLS := flags.Bool("tls", false, "TLS on the client ports, client certificates required: ETCD_CACERT, ETCD_CERT, ETCD_KEY")
	withProxy := flags.Bool("proxy", false, "a proxy that makes faults in front of each member: see `proxy` of the control")
	var further flagList
	flags.Var(&further, "flag", "a further flag of etcd, such as --flag=--quota-backend-bytes=16777216 (repeatable)")
	_ = flags.Parse(args)
	command := flags.Args()
	if len(command) == 0 || *members < 1 {
		fmt.Fprintln(os.Stderr, "usage: peers etcd-run [--version 3.7|3.4] [--members N] [--tls] [--proxy] [--flag=FLAG]... -- COMMAND [ARG...]")
		return 2
	}
	program, err := findEtcd(*version)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errSkip) {
			return exitSkipped
		}
		return 2
	}
	cluster, err := startEtcd(etcdOptions{program: program, count: *members, flags: further, tls: *withTLS, proxy: *withProxy, seed: *seed})
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-run:", err)
		return 1
	}
	defer cluster.stop()
	control, err := serveControl(cluster.obey)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-run:", err)
		return 1
	}
	defer control.Close()

	return runCommand(context.Background(), "etcd-run", command, cluster.environment(*version, control.Addr().String()), func(failed bool) {
		if *verbose || failed {
			fmt.Fprint(os.Stderr, cluster.logTails(20))
		}
	})
}

// runCommand runs a command with that environment besides ours, hands signals on to it, and returns its exit status. ended is called before
// the return.
func runCommand(ctx context.Context, program string, command, environment []string, ended func(failed bool)) int {
	child := exec.CommandContext(ctx, command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child.Env = append(os.Environ(), environment...)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "peers %s: %v\n", program, err)
		return 1
	}
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()
	for {
		select {
		case received := <-signals:
			_ = child.Process.Signal(received)
		case <-done:
			status := child.ProcessState.ExitCode()
			if status < 0 {
				fmt.Fprintf(os.Stderr, "peers %s: %s: %v\n", program, command[0], child.ProcessState)
				status = 1
			}
			if ended != nil {
				ended(status != 0 && status != exitSkipped)
			}
			return status
		}
	}
}

// environment is what commands that use the cluster get.
func (c *etcdCluster) environment(version, control string) []string {
	self, _ := os.Executable()
	etcdctl := filepath.Join(filepath.Dir(self), "etcdctl")
	if version == "3.4" {
		etcdctl = "/usr/bin/etcdctl"
	}
	env := []string{
		"ETCD_ENDPOINTS=" + strings.Join(c.endpoints(false), ","),
		"ETCD_DIRECT_ENDPOINTS=" + strings.Join(c.endpoints(true), ","),
		"ETCD_VERSION=" + version,
		"ETCD_DIR=" + c.dir,
		"CONTROL=" + control,
		"PEERS=" + self,
		"ETCDCTL=" + etcdctl,
	}
	if version == "3.4" {
		env = append(env, "ETCDCTL_API=3")
	}
	if c.certs != nil {
		env = append(env, "ETCD_CACERT="+c.certs.caFile, "ETCD_CERT="+c.certs.certFile, "ETCD_KEY="+c.certs.keyFile)
	}
	return env
}
