// Command etcdutl is etcd's own tool for its files: the commands of its module, whose main package cannot be imported.
package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
)

func main() {
	root := &cobra.Command{Use: "etcdutl", SilenceUsage: true}
	root.PersistentFlags().DurationVar(&etcdutl.FlockTimeout, "timeout", 10*time.Second, "time to wait for the lock of a file")
	root.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple", "fields, json, protobuf, simple or table")
	root.AddCommand(etcdutl.NewDefragCommand(), etcdutl.NewSnapshotCommand(), etcdutl.NewHashKVCommand(), etcdutl.NewVersionCommand())
	if root.Execute() != nil {
		os.Exit(1)
	}
}
