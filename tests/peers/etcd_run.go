package main

import (
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

	child := exec.Command(command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child.Env = append(os.Environ(), cluster.environment(*version, control.Addr().String())...)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-run:", err)
		return 1
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case received := <-signals:
			_ = child.Process.Signal(received)
		case <-ended:
			status := child.ProcessState.ExitCode()
			if status < 0 {
				fmt.Fprintf(os.Stderr, "peers etcd-run: %s: %v\n", command[0], child.ProcessState)
				status = 1
			}
			if *verbose || (status != 0 && status != exitSkipped) {
				fmt.Fprint(os.Stderr, cluster.logTails(20))
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
