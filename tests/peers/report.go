package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

const reportedViolationsMax = 100

// report gathers what a program measured and which checks failed. Safe for use by many goroutines.
type report struct {
	program string
	started time.Time

	mu         sync.Mutex
	checks     int
	failed     int
	violations []string
	figures    map[string]any
}

func newReport(program string) *report {
	return &report{program: program, started: time.Now(), figures: map[string]any{}}
}

// check counts a check; a false ok is recorded as a violation of the named rule. Returns ok.
func (r *report) check(ok bool, rule, format string, args ...any) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks++
	if ok {
		return true
	}
	r.failed++
	text := rule + ": " + fmt.Sprintf(format, args...)
	if len(r.violations) < reportedViolationsMax {
		r.violations = append(r.violations, text)
		fmt.Fprintf(os.Stderr, "peers %s: VIOLATION %s\n", r.program, text)
	}
	return false
}

func (r *report) violation(rule, format string, args ...any) {
	r.check(false, rule, format, args...)
}

func (r *report) violated() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed > 0
}

func (r *report) figure(name string, value any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures[name] = value
}

// finish prints the summary and returns the exit status.
func (r *report) finish() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	summary := map[string]any{
		"program":         r.program,
		"ok":              r.failed == 0,
		"checks":          r.checks,
		"violations":      r.violations,
		"violationsTotal": r.failed,
		"seconds":         float64(time.Since(r.started).Milliseconds()) / 1000,
		"figures":         r.figures,
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(summary)
	if r.failed > 0 {
		fmt.Fprintf(os.Stderr, "peers %s: %d of %d checks failed; first: %s\n", r.program, r.failed, r.checks, r.violations[0])
		return 1
	}
	return 0
}
