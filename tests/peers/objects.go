package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// object is a decoded JSON object. Numbers are json.Number, so nothing is rounded.
type object = map[string]any

// dig walks down nested objects (string steps) and arrays (int steps); nil when a step is missing.
func dig(from any, path ...any) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			fields, ok := from.(map[string]any)
			if !ok {
				return nil
			}
			from = fields[key]
		case int:
			items, ok := from.([]any)
			if !ok || key >= len(items) {
				return nil
			}
			from = items[key]
		}
	}
	return from
}

func digString(from any, path ...any) string {
	text, _ := dig(from, path...).(string)
	return text
}

func digItems(from any, path ...any) []any {
	items, _ := dig(from, path...).([]any)
	return items
}

func digNumber(from any, path ...any) int64 {
	switch number := dig(from, path...).(type) {
	case json.Number:
		value, err := number.Int64()
		if err != nil {
			return -1
		}
		return value
	case int64:
		return number
	case float64:
		return int64(number)
	}
	return -1
}

func revisionOf(from any) uint64 {
	return parseRevision(digString(from, "metadata", "resourceVersion"))
}

// parseRevision reads a resourceVersion; 0 when it is not the canonical decimal text that H-419 wants.
func parseRevision(text string) uint64 {
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(value, 10) != text {
		return 0
	}
	return value
}

func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// contentHash is a hash of the object without its resourceVersion: two states with equal hashes have equal content. The object is
// not touched (informers share theirs).
func contentHash(content map[string]any) uint64 {
	outer := make(map[string]any, len(content))
	for key, value := range content {
		outer[key] = value
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		inner := make(map[string]any, len(metadata))
		for key, value := range metadata {
			if key != "resourceVersion" {
				inner[key] = value
			}
		}
		outer["metadata"] = inner
	}
	text, err := json.Marshal(outer)
	if err != nil {
		return 0
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text)
	return hash.Sum64()
}

// fact is one event about one object as far as our comparisons need it.
type fact struct {
	kind     string // ADDED, MODIFIED, DELETED
	key      string
	uid      string
	revision uint64
	hash     uint64
	matches  uint32 // bit i: filter i of the recorder matches this state
}

func (f fact) String() string {
	return fmt.Sprintf("%s %s uid=%.8s rv=%d hash=%x", f.kind, f.key, f.uid, f.revision, f.hash)
}

// same compares what a client sees; filters are private to the recorder.
func (f fact) same(other fact) bool {
	f.matches, other.matches = 0, 0
	return f == other
}

func factOf(kind string, from *unstructured.Unstructured) fact {
	return fact{
		kind:     kind,
		key:      keyOf(from.GetNamespace(), from.GetName()),
		uid:      string(from.GetUID()),
		revision: parseRevision(from.GetResourceVersion()),
		hash:     contentHash(from.Object),
	}
}
