/* Asks the program that runs a test for something: to kill, freeze or start again a member of the etcd around
 * it, or for faults of the network. Tests that run under tests/integration/with-etcd.sh (`peers etcd-run`)
 * find its address in $CONTROL; the commands are those of `obey` in tests/peers/etcd_cluster.go and
 * tests/peers/fault_proxy.go. */
#ifndef VDTEST_CONTROL_H
#define VDTEST_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

/* Sends one command and waits for its answer, which is truncated to size; "" if there is none. Returns false
 * if the command was refused; answer then has the reason (also if there is no $CONTROL). Blocks until the
 * command is carried out: "wait" up to 90 s, until etcd is healthy again. */
bool test_control(const char *command, char *answer, size_t size);

#endif
