package main

import (
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// newEtcdClient is etcd's own Go client for these endpoints.
func newEtcdClient(c *etcdCluster, endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: c.clientTLS(), DialTimeout: 20 * time.Second, DialKeepAliveTime: 5 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second, Logger: zap.NewNop(), MaxCallRecvMsgSize: 256 << 20})
}
