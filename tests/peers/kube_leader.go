package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// kube-leader: client-go's leader election with the reports of examples/leader_election.c, so that both compete for one Lease.

func runKubeLeader(arguments []string) int {
	flags, _, _ := newFlags("kube-leader")
	namespace := flags.String("namespace", "default", "namespace of the Lease")
	lease := flags.String("lease", "", "name of the Lease")
	identity := flags.String("identity", "", "identity of this candidate")
	_ = flags.Parse(arguments)
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: *namespace, Name: *lease},
		Client:     kubernetes.NewForConfigOrDie(config).CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: *identity},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { fmt.Printf("%s leads\n", *identity) },
			OnStoppedLeading: func() { fmt.Printf("%s stops\n", *identity) },
			OnNewLeader:      func(leader string) { fmt.Printf("the leader is %s\n", leader) },
		},
	})
	return 0
}
