package main

import "time"

const pollInterval = 5 * time.Millisecond

// pollUntil calls done until it returns true or patience is over, and returns its last result. It is only for states that nothing reports when they
// change: another process becomes ready, serves a new kind, has compacted its history. Code of this process uses a channel or a condition instead.
func pollUntil(patience time.Duration, done func() bool) bool {
	for deadline := time.Now().Add(patience); ; time.Sleep(pollInterval) {
		if done() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// pause stops the caller for a time that is itself what the test does: the rate of a load, the delay of a proxy, the life of a server before its kill.
func pause(d time.Duration) {
	time.Sleep(d)
}
