package main

import (
	"fmt"
	"strings"
	"time"
)

// open starts a watch that must be accepted.
func (t *wireTest) open(target string, headers ...string) *stream {
	s, head, err := openStream(t.address, target, headers...)
	if err != nil || s == nil {
		body := ""
		if head != nil {
			body = fmt.Sprintf("%d %.300s", head.status, head.body)
		}
		t.report.violation("R-632", "GET %s: watch did not start: %v %s", target, err, body)
		return nil
	}
	t.report.check(strings.HasPrefix(head.header.Get("Content-Type"), "application/json"), "R-633", "GET %s: Content-Type %q", target, head.header.Get("Content-Type"))
	t.report.check(head.header.Get("Content-Encoding") == "", "H-308", "GET %s: watch with Content-Encoding %q", target, head.header.Get("Content-Encoding"))
	return s
}

// expect takes as many events as wanted and compares "TYPE name" with them.
func (t *wireTest) expect(rule, what string, s *stream, want ...string) []streamEvent {
	if s == nil {
		return nil
	}
	got := []streamEvent{}
	for i, line := range want {
		event, err := s.next(t.prompt)
		for err == nil && event.kind == "BOOKMARK" && !event.endsInitialEvents() { // may come at any time, when asked for
			event, err = s.next(t.prompt)
		}
		if err != nil {
			t.report.violation(rule, "%s: event %d (%s): %v", what, i, line, err)
			return nil
		}
		got = append(got, event)
		have := event.kind + " " + digString(event.object, "metadata", "name")
		if !t.report.check(have == line, rule, "%s: event %d is %q instead of %q: %.200s", what, i, have, line, event.raw) {
			return nil
		}
	}
	return got
}

// silent checks that nothing comes for a moment.
func (t *wireTest) silent(rule, what string, s *stream) {
	if s == nil {
		return
	}
	event, err := s.next(t.short)
	if err == nil && event.kind == "BOOKMARK" && !event.endsInitialEvents() {
		return
	}
	t.report.check(err == errNothing, rule, "%s: unexpected %v %v", what, event, err)
}

// endBookmark takes the bookmark that ends the initial events.
func (t *wireTest) endBookmark(rule, what string, s *stream) uint64 {
	if s == nil {
		return 0
	}
	event, err := s.next(t.prompt)
	if err != nil || !t.report.check(event.endsInitialEvents(), "H-403", "%s: initial events do not end with the annotated bookmark: %v %v %.200s", what, event.kind, err, event.raw) {
		t.report.check(err == nil, "H-403", "%s: no bookmark ends the initial events: %v", what, err)
		return 0
	}
	t.report.check(digString(event.object, "kind") == "ConfigMap" && digString(event.object, "apiVersion") == "v1", "H-405", "%s: bookmark object is %.200s", what, event.raw)
	t.report.check(digString(event.object, "metadata", "name") == "" && event.object["data"] == nil, "R-524", "%s: bookmark object is not empty: %.200s", what, event.raw)
	return revisionOf(event.object)
}

var sevenAdded = []string{"ADDED a", "ADDED b", "ADDED c", "ADDED d", "ADDED e", "ADDED f", "ADDED g"}

// watchStarts is the table 6.2.
func (t *wireTest) watchStarts(upstream bool) {
	revisions := t.makeSeven()
	now := revisions[6]
	const newer = "&resourceVersionMatch=NotOlderThan"
	// In a query, {i} stands for the revision of creation i, {before} for the one before the first, {last} for the last.
	const live, before, last = -1, -2, 6
	for _, row := range []struct {
		name, query string
		state       bool // whole state first
		bookmark    bool // ended by the annotated bookmark
		from        int  // else: events after this creation
	}{
		{"unset, default", "?watch=1", true, false, 0},
		{"unset, bookmarks", "?watch=1&allowWatchBookmarks=true", true, true, 0},
		{"unset, true, bookmarks", "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true" + newer, true, true, 0},
		{"unset, true", "?watch=1&sendInitialEvents=true" + newer, true, false, 0},
		{"unset, false", "?watch=1&sendInitialEvents=false" + newer, false, false, live},
		{"unset, false, bookmarks", "?watch=1&sendInitialEvents=false&allowWatchBookmarks=true" + newer, false, false, live},
		{"0, default", "?watch=1&resourceVersion=0", true, false, 0},
		{"0, default, bookmarks", "?watch=1&resourceVersion=0&allowWatchBookmarks=true", true, true, 0},
		{"0, true, bookmarks", "?watch=1&resourceVersion=0&sendInitialEvents=true&allowWatchBookmarks=true" + newer, true, true, 0},
		{"0, false", "?watch=1&resourceVersion=0&sendInitialEvents=false" + newer, false, false, live},
		{"N", "?watch=1&resourceVersion={2}", false, false, 2},
		{"N, bookmarks", "?watch=1&allowWatchBookmarks=true&resourceVersion={2}", false, false, 2},
		{"N, false", "?watch=1&sendInitialEvents=false&resourceVersion={2}" + newer, false, false, 2},
		{"N, true, bookmarks", "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersion={2}" + newer, true, true, 0},
		{"N, true", "?watch=1&sendInitialEvents=true&resourceVersion={2}" + newer, true, false, 0},
		{"last", "?watch=1&resourceVersion={last}", false, false, last},
		{"before the first", "?watch=1&resourceVersion={before}", false, false, before},
	} {
		revisions = t.makeSeven()
		now = revisions[6]
		s := t.open(wirePath + strings.NewReplacer("{2}", text(revisions[2]), "{last}", text(now), "{before}", text(revisions[0]-1)).Replace(row.query))
		if s == nil {
			continue
		}
		if row.state {
			events := t.expect("R-480", row.name, s, sevenAdded...)
			for i, event := range events {
				t.report.check(revisionOf(event.object) == revisions[i], "R-619", "%s: initial %v carries revision %d, its own is %d", row.name, event, revisionOf(event.object), revisions[i])
			}
		} else if row.from != live {
			t.expect("R-480", row.name, s, sevenAdded[max(0, row.from+1):]...)
		}
		if row.bookmark {
			at := t.endBookmark("R-523", row.name, s)
			t.report.check(at >= now, "R-523", "%s: end bookmark at %d, state at %d", row.name, at, now)
		}
		t.silent("R-480", row.name+", before any change", s)
		made := t.createConfigMap("live", "")
		changed := t.patchConfigMap("live", `{"data":{"value":"1"}}`)
		t.deleteConfigMap("live")
		events := t.expect("R-480", row.name+", live", s, "ADDED live", "MODIFIED live", "DELETED live")
		if len(events) == 3 {
			t.report.check(revisionOf(events[0].object) == made && revisionOf(events[1].object) == changed, "R-619", "%s: live events at %d, %d; written at %d, %d",
				row.name, revisionOf(events[0].object), revisionOf(events[1].object), made, changed)
			t.report.check(revisionOf(events[2].object) > changed && digString(events[2].object, "data", "value") == "1", "H-408", "%s: DELETED carries %.200s", row.name, events[2].raw)
		}
		s.close()
	}
	revisions = t.makeSeven()
	now = revisions[6]

	// Headers.
	s := t.open(wirePath+"?watch=1&resourceVersion="+text(now), "Accept-Encoding: gzip")
	if s != nil {
		t.report.check(strings.Contains(s.head.header.Get("Cache-Control"), "no-cache"), "H-407", "Cache-Control of a watch is %q", s.head.header.Get("Cache-Control"))
		s.close()
	}
	s = t.open(wirePath + "?watch=1&pretty=true&resourceVersion=" + text(revisions[5]))
	if events := t.expect("R-609", "pretty watch", s, "ADDED g"); len(events) == 1 {
		t.report.check(!strings.Contains(string(events[0].raw), "\n"), "R-609", "watch frames must not be pretty: %.100q", events[0].raw)
	}
	s.close()

	// The future: a plain watch waits silently, initial events are refused inside the stream.
	future := text(now + 1000000)
	s = t.open(wirePath + "?watch=1&timeoutSeconds=2&resourceVersion=" + future)
	t.silent("R-480", "watch from the future", s)
	s.close()
	s = t.open(wirePath + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersion=" + future + newer)
	if s != nil {
		event, err := s.next(2 * time.Minute)
		t.report.check(err == nil && event.kind == "ERROR" && digNumber(event.object, "code") == 504 && digString(event.object, "reason") == "Timeout" &&
			digString(event.object, "details", "causes", 0, "reason") == "ResourceVersionTooLarge" && digString(event.object, "kind") == "Status",
			"R-520", "WatchList from the future: %v %v %.300s", event.kind, err, event.raw)
		_, err = s.next(t.prompt)
		t.report.check(err == errStreamEnded, "R-521", "after the ERROR event: %v", err)
		s.close()
	}

	// The deprecated path forces a watch, without defaulting.
	for _, target := range []string{"/api/v1/watch/namespaces/" + wireNamespace + "/configmaps", "/api/v1/watch/namespaces/" + wireNamespace + "/configmaps?resourceVersion=0"} {
		s := t.open(target)
		t.expect("R-602", target, s, sevenAdded...)
		s.close()
	}
	s = t.open("/api/v1/watch/namespaces/" + wireNamespace + "/configmaps/c")
	t.expect("R-616", "deprecated watch of one name", s, "ADDED c")
	t.patchConfigMap("b", `{"data":{"value":"2"}}`)
	t.patchConfigMap("c", `{"data":{"value":"2"}}`)
	t.expect("R-616", "deprecated watch of one name", s, "MODIFIED c")
	s.close()

	// Cluster-wide, and nothing of another resource.
	s = t.open("/api/v1/configmaps" + query("watch", "1", "labelSelector", "n=4"))
	t.expect("R-525", "all namespaces", s, "ADDED e")
	t.wants(201, "POST", "/api/v1/namespaces/"+wireNamespace+"/secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"live","labels":{"n":"4"}}}`, jsonType)
	t.wants(200, "DELETE", "/api/v1/namespaces/"+wireNamespace+"/secrets/live", "")
	t.silent("R-525", "all namespaces, after a change of another resource", s)
	s.close()

	// kubectl get NAME -w.
	s = t.open(wirePath + query("watch", "1", "resourceVersion", "0", "fieldSelector", "metadata.name=d"))
	t.expect("H-414", "watch of one name", s, "ADDED d")
	t.patchConfigMap("c", `{"data":{"value":"3"}}`)
	t.patchConfigMap("d", `{"data":{"value":"3"}}`)
	t.expect("H-414", "watch of one name", s, "MODIFIED d")
	s.close()
}

// watchSelectors: an object that starts to match is ADDED, one that stops is DELETED with its last matching state.
func (t *wireTest) watchSelectors() {
	revisions := t.makeSeven()
	s := t.open(wirePath + query("watch", "1", "allowWatchBookmarks", "true", "labelSelector", "colour=red"))
	t.expect("R-481", "selected initial events", s, "ADDED a", "ADDED c", "ADDED e", "ADDED g")
	at := t.endBookmark("R-523", "selected initial events", s)
	t.report.check(at >= revisions[6], "R-523", "end bookmark of a selected watch at %d", at)
	t.patchConfigMap("b", `{"data":{"value":"unseen"}}`)
	became := t.patchConfigMap("b", `{"metadata":{"labels":{"colour":"red"}}}`)
	stayed := t.patchConfigMap("b", `{"data":{"value":"seen"}}`)
	left := t.patchConfigMap("b", `{"metadata":{"labels":{"colour":"blue"}},"data":{"value":"after"}}`)
	t.deleteConfigMap("b")
	t.deleteConfigMap("c")
	events := t.expect("R-552", "label changes", s, "ADDED b", "MODIFIED b", "DELETED b", "DELETED c")
	if len(events) == 4 {
		t.report.check(revisionOf(events[0].object) == became && revisionOf(events[1].object) == stayed, "R-552", "label changes: revisions of %v", events)
		t.report.check(revisionOf(events[2].object) == left && digString(events[2].object, "data", "value") == "seen" &&
			digString(events[2].object, "metadata", "labels", "colour") == "red", "R-552", "left the selector at %d: DELETED must carry the previous state with the new revision: %.300s",
			left, events[2].raw)
	}
	t.silent("R-552", "selected watch", s)
	s.close()

	// Resume of a selected watch in the middle of history gives the same.
	s = t.open(wirePath + query("watch", "1", "labelSelector", "colour=red", "resourceVersion", text(became-1)))
	t.expect("R-552", "label changes, resumed", s, "ADDED b", "MODIFIED b", "DELETED b", "DELETED c")
	s.close()
	s = t.open(wirePath + query("watch", "1", "labelSelector", "colour=red", "resourceVersion", text(became)))
	t.expect("R-552", "label changes, resumed later", s, "MODIFIED b", "DELETED b", "DELETED c")
	s.close()
	s = t.open(wirePath + query("watch", "1", "labelSelector", "colour!=red", "resourceVersion", text(became-1)))
	t.expect("R-552", "the other side of the label changes", s, "DELETED b", "ADDED b", "DELETED b")
	s.close()
}

func (t *wireTest) watchRepresentations() {
	revisions := t.makeSeven()
	s := t.open(wirePath+"?watch=1&allowWatchBookmarks=true", partialAccept)
	if s != nil {
		for i := 0; i < 8; i++ {
			event, err := s.next(t.prompt)
			if !t.report.check(err == nil, "H-306", "metadata watch, event %d: %v", i, err) {
				break
			}
			t.report.check(digString(event.object, "kind") == "PartialObjectMetadata" && digString(event.object, "apiVersion") == "meta.k8s.io/v1" && event.object["data"] == nil,
				"H-306", "metadata watch: %.200s", event.raw)
			if i < 7 {
				t.report.check(event.kind == "ADDED" && revisionOf(event.object) == revisions[i], "H-306", "metadata watch: event %d is %v", i, event)
			} else {
				t.report.check(event.endsInitialEvents(), "R-640", "metadata watch: no annotated bookmark: %v %.200s", event.kind, event.raw)
			}
		}
		t.patchConfigMap("a", `{"data":{"value":"1"}}`)
		t.deleteConfigMap("a")
		events := t.expect("H-306", "metadata watch", s, "MODIFIED a", "DELETED a")
		t.report.check(len(events) != 2 || events[1].object["data"] == nil, "H-306", "metadata watch: DELETED with data")
		s.close()
	}

	revisions = t.makeSeven()
	for _, include := range []string{"", "Metadata", "Object", "None"} {
		s := t.open(wirePath+"?watch=1&includeObject="+include, tableAccept)
		if s == nil {
			continue
		}
		for i := 0; i < 9; i++ {
			if i == 7 { // not before: the head of a watch may come before its state is taken
				t.patchConfigMap("g", `{"data":{"other":"`+include+`x"}}`)
				t.deleteConfigMap("g")
			}
			event, err := s.next(t.prompt)
			if !t.report.check(err == nil, "H-303", "Table watch, event %d: %v", i, err) {
				break
			}
			kind := []string{"ADDED", "ADDED", "ADDED", "ADDED", "ADDED", "ADDED", "ADDED", "MODIFIED", "DELETED"}[i]
			name := strings.Split("a b c d e f g g g", " ")[i]
			t.report.check(event.kind == kind && digString(event.object, "kind") == "Table" && digString(event.object, "apiVersion") == "meta.k8s.io/v1" &&
				len(digItems(event.object, "rows")) == 1 && digString(event.object, "rows", 0, "cells", 0) == name, "H-303", "Table watch, event %d is %s %.300s", i, event.kind, event.raw)
			t.report.check((len(digItems(event.object, "columnDefinitions")) > 0) == (i == 0), "R-640", "Table watch, event %d: columnDefinitions %v", i, event.object["columnDefinitions"])
			row := dig(event.object, "rows", 0, "object")
			switch include {
			case "Object":
				t.report.check(digString(row, "kind") == "ConfigMap" && digString(row, "data", "value") == "0", "H-302", "Table watch with objects: %.300s", event.raw)
			case "None":
				t.report.check(dig(row, "metadata") == nil, "H-302", "Table watch without objects: %.300s", event.raw)
			default:
				t.report.check(digString(row, "kind") == "PartialObjectMetadata" && digString(row, "metadata", "name") == name && dig(row, "data") == nil, "H-302", "Table watch: %.300s", event.raw)
			}
		}
		s.close()
		t.createConfigMap("g", "")
	}
	s = t.open(wirePath+"?watch=1&allowWatchBookmarks=true", tableAccept)
	if s != nil {
		for i := 0; i < 8; i++ {
			event, err := s.next(t.prompt)
			if !t.report.check(err == nil, "R-640", "Table watch with bookmarks, event %d: %v", i, err) {
				break
			}
			if i == 7 {
				annotated := digString(event.object, "rows", 0, "object", "metadata", "annotations", "k8s.io/initial-events-end") == "true" ||
					digString(event.object, "metadata", "annotations", "k8s.io/initial-events-end") == "true"
				t.report.check(event.kind == "BOOKMARK" && digString(event.object, "kind") == "Table" && annotated, "R-640", "end bookmark as Table: %s %.300s", event.kind, event.raw)
			}
		}
		s.close()
	}
	_ = revisions
}

// watchEnds: timeouts end with the zero chunk and leave the connection usable; bookmarks come before a planned end.
func (t *wireTest) watchEnds(upstream bool) {
	revisions := t.makeSeven()
	conn, err := dialRaw(t.address)
	if !t.report.check(err == nil, "setup", "%v", err) {
		return
	}
	defer conn.Close()
	for round := 0; round < 2; round++ {
		started := time.Now()
		_, _ = conn.Write(rawRequest{method: "GET", target: wirePath + "?watch=1&timeoutSeconds=1&resourceVersion=" + text(revisions[4])}.bytes(t.address))
		head, err := conn.readHead(t.prompt)
		if !t.report.check(err == nil && head.status == 200 && head.chunked, "R-632", "watch on a kept connection: %v", err) {
			return
		}
		t.report.check(time.Since(started) < 900*time.Millisecond, "H-407", "the head of a watch came after %v", time.Since(started))
		err = conn.readBody(head, false)
		took := time.Since(started)
		t.report.check(err == nil, "H-409", "timeoutSeconds=1 did not end with the zero chunk: %v", err)
		t.report.check(took > 800*time.Millisecond && took < 5*time.Second, "R-630", "timeoutSeconds=1 took %v", took)
		t.report.check(strings.Count(string(head.body), `{"type":"ADDED","object":{`) == 2 && strings.HasSuffix(string(head.body), "}\n"), "R-634", "body of the watch: %.300q", head.body)
		_, _ = conn.Write(rawRequest{method: "GET", target: wirePath + "/a"}.bytes(t.address))
		after, err := conn.readResponse(t.prompt)
		t.report.check(err == nil && after.status == 200, "H-409", "the connection is not usable after the watch: %v", err)
	}

	// A bookmark just before the planned end; it may resume (R-558, H-410). When it is made depends on a timer, and what it says on the
	// progress that the store had told by then: on a machine that has no time one of several watches must have it.
	other := uint64(0)
	bookmark := uint64(0)
	for tries := 0; tries == 0 || (!upstream && bookmark < other && tries < 5); tries++ {
		started := time.Now()
		s := t.open(wirePath + "?watch=1&allowWatchBookmarks=true&timeoutSeconds=4&resourceVersion=" + text(revisions[6]))
		if s == nil {
			return
		}
		if tries == 0 {
			other = revisionOf(t.wants(201, "POST", "/api/v1/namespaces/"+wireNamespace+"/secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"other"}}`, jsonType))
			t.wants(200, "DELETE", "/api/v1/namespaces/"+wireNamespace+"/secrets/other", "")
		}
		for {
			event, err := s.next(t.prompt)
			if err != nil {
				t.report.check(err == errStreamEnded, "H-409", "timeoutSeconds=4 ended with %v", err)
				break
			}
			if t.report.check(event.kind == "BOOKMARK" && !event.endsInitialEvents(), "R-558", "quiet watch got %v", event) {
				bookmark = revisionOf(event.object)
			}
		}
		took := time.Since(started)
		t.report.check(took > 3500*time.Millisecond && took < 9*time.Second, "R-630", "timeoutSeconds=4 took %v", took)
		s.close()
	}
	if !upstream { // the cache of kube-apiserver only moves on when etcd tells it to
		t.report.check(bookmark >= revisions[6], "H-410", "no bookmark before the planned end (last %d)", bookmark)
		t.report.check(bookmark >= other, "R-541", "the bookmark before the end is at %d; a write elsewhere made the revision %d", bookmark, other)
	}
	if bookmark > 0 {
		made := t.createConfigMap("resumed", "")
		s := t.open(wirePath + "?watch=1&resourceVersion=" + text(bookmark))
		if events := t.expect("bookmarkable", "resume from a bookmark", s, "ADDED resumed"); len(events) == 1 {
			t.report.check(revisionOf(events[0].object) == made, "bookmarkable", "resume from a bookmark: %v", events[0])
		}
		s.close()
	}

	// Without bookmarks asked there are none.
	s := t.open(wirePath + "?watch=1&timeoutSeconds=3&resourceVersion=" + text(revisionOf(t.wants(200, "GET", wirePath, ""))))
	if s != nil {
		event, err := s.next(t.prompt)
		t.report.check(err == errStreamEnded, "R-558", "a watch without allowWatchBookmarks got %v %v", event, err)
		s.close()
	}
}

// watchWrites: which writes make which events.
func (t *wireTest) watchWrites() {
	t.makeSeven()
	now := revisionOf(t.wants(200, "GET", wirePath, ""))
	s := t.open(wirePath + "?watch=1&resourceVersion=" + text(now))

	// No change, no event, same revision. Dry runs neither.
	before := t.wants(200, "GET", wirePath+"/a", "")
	same := t.patchConfigMap("a", `{"data":{"value":"0"}}`)
	t.report.check(same == revisionOf(before), "R-671", "a patch without a change moved the revision from %d to %d", revisionOf(before), same)
	t.wants(201, "POST", wirePath+"?dryRun=All", configMapJSON("dry", "", ""), jsonType)
	dry := t.wants(200, "PATCH", wirePath+"/a?dryRun=All", `{"data":{"value":"dry"}}`, mergeType)
	t.report.check(digString(dry, "data", "value") == "dry", "R-673", "dry run answers %v", dry["data"])
	t.wants(200, "DELETE", wirePath+"/a?dryRun=All", "")
	t.wants(200, "DELETE", wirePath+"/a", `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`, jsonType)
	t.refused("R-673", refusal{code: 404, reason: "NotFound"}, "GET", wirePath+"/dry", "")
	t.refused("R-673", refusal{code: 409, reason: "AlreadyExists"}, "POST", wirePath+"?dryRun=All", configMapJSON("a", "", ""), jsonType)
	t.silent("R-671", "writes that change nothing", s)

	// Finalizers: marked first, gone with the last finalizer.
	t.patchConfigMap("b", `{"metadata":{"finalizers":["example.com/keep"]}}`)
	t.wants(200, "DELETE", wirePath+"/b", "")
	marked := t.wants(200, "GET", wirePath+"/b", "")
	t.report.check(digString(marked, "metadata", "deletionTimestamp") != "", "R-667", "delete with a finalizer does not mark: %v", marked["metadata"])
	t.refused("R-660", refusal{code: 409, reason: "AlreadyExists", contains: "object is being deleted: "}, "POST", wirePath, configMapJSON("b", "", ""), jsonType)
	gone := t.wants(200, "PATCH", wirePath+"/b", `{"metadata":{"finalizers":null}}`, mergeType)
	t.report.check(digString(gone, "metadata", "name") == "b", "R-664", "removing the last finalizer answers %v", gone["kind"])
	t.refused("R-664", refusal{code: 404, reason: "NotFound"}, "GET", wirePath+"/b", "")
	t.expect("R-667", "finalizer", s, "MODIFIED b", "MODIFIED b", "DELETED b")

	// Delete and create again: another uid. Deletecollection: one DELETED each.
	deleted := t.wants(200, "DELETE", wirePath+"/c", `{"preconditions":{"uid":"`+digString(t.wants(200, "GET", wirePath+"/c", ""), "metadata", "uid")+`"}}`, jsonType)
	t.report.check(digString(deleted, "kind") == "Status" && digString(deleted, "status") == "Success" && digString(deleted, "details", "name") == "c" &&
		digString(deleted, "details", "kind") == "configmaps" && digString(deleted, "details", "uid") != "", "R-666", "answer to delete: %v", deleted)
	created := t.wants(201, "POST", wirePath, configMapJSON("c", "", ""), jsonType)
	t.report.check(digString(created, "metadata", "uid") != digString(deleted, "details", "uid"), "H-350", "a new object has the uid of the old")
	t.expect("R-552", "delete and create", s, "DELETED c", "ADDED c")
	t.wants(200, "DELETE", wirePath+"?labelSelector=colour%3Dred", "")
	seen := map[string]bool{}
	last := uint64(0)
	for i := 0; s != nil && i < 3; i++ {
		event, err := s.next(t.prompt)
		if !t.report.check(err == nil && event.kind == "DELETED", "R-669", "deletecollection: %v %v", event, err) {
			break
		}
		seen[digString(event.object, "metadata", "name")] = true
		t.report.check(revisionOf(event.object) > last, "R-619", "deletecollection: %v after revision %d", event, last)
		last = revisionOf(event.object)
	}
	t.report.check(seen["a"] && seen["e"] && seen["g"], "R-669", "deletecollection of colour=red: %v", seen)
	t.silent("R-669", "after deletecollection", s)

	// generateName.
	generated := t.wants(201, "POST", wirePath, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"gen-"}}`, jsonType)
	name := digString(generated, "metadata", "name")
	t.report.check(len(name) == 9 && strings.HasPrefix(name, "gen-") && strings.Trim(name[4:], "bcdfghjklmnpqrstvwxz2456789") == "", "H-349", "generated name %q", name)
	t.expect("H-349", "generateName", s, "ADDED "+name)
	s.close()
}

// customFields: a custom kind with a selectable field, its columns, and its generation.
func (t *wireTest) customFields() {
	path := fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", t.custom.resource.Group, t.custom.resource.Version, wireNamespace, t.custom.resource.Resource)
	t.wants(200, "DELETE", path, "")
	make := func(name, colour string) uint64 {
		return revisionOf(t.wants(201, "POST", path, fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","metadata":{"name":"%s"},"spec":{"colour":"%s","size":9007199254740993}}`,
			t.custom.resource.GroupVersion(), t.custom.kind, name, colour), jsonType))
	}
	first := make("w1", "red")
	make("w2", "blue")
	list := t.wants(200, "GET", path+"?fieldSelector=spec.colour%3Dred", "")
	t.report.check(fmt.Sprint(namesOf(list)) == "[w1]" && digString(list, "kind") == t.custom.kind+"List", "R-693", "selectable field: %v %v", list["kind"], namesOf(list))
	size := fmt.Sprint(dig(list, "items", 0, "spec", "size"))
	t.report.check(size == "9007199254740993", "H-704", "an integer beyond 2^53 came back as %s", size)
	s := t.open(path + query("watch", "1", "fieldSelector", "spec.colour=red", "resourceVersion", text(first-1)))
	t.expect("R-693", "watch by a selectable field", s, "ADDED w1")
	t.wants(200, "PATCH", path+"/w2", `{"spec":{"colour":"red"}}`, mergeType)
	t.wants(200, "PATCH", path+"/w1", `{"spec":{"colour":"green"}}`, mergeType)
	t.expect("R-693", "watch by a selectable field", s, "ADDED w2", "DELETED w1")
	s.close()
	t.refused("R-601", refusal{code: 400, reason: "BadRequest"}, "GET", path+"?fieldSelector=spec.size%3D1", "")
	_, table := t.ask("GET", path, "", tableAccept)
	columns := []string{}
	for _, column := range digItems(table, "columnDefinitions") {
		columns = append(columns, digString(column, "name"))
	}
	t.report.check(strings.Contains(strings.ToLower(strings.Join(columns, " ")), "name colour size"), "H-301", "columns of the custom kind: %v", columns)
	t.report.check(digString(table, "rows", 0, "cells", 0) == "w1" && digString(table, "rows", 0, "cells", 1) == "green", "H-301", "cells of the custom kind: %v", dig(table, "rows", 0, "cells"))
	t.wants(200, "DELETE", path, "")
}

// expiry writes until an early revision has left the history, then checks every way to ask for it.
func (t *wireTest) expiry(limit time.Duration) {
	revisions := t.makeSeven()
	old := revisions[2]
	token := digString(t.wants(200, "GET", wirePath+"?limit=2", ""), "metadata", "continue")
	padding := strings.Repeat("0123456789abcdef", 4096)
	var event streamEvent
	expired := false
	started := time.Now()
	for n := 0; !expired && time.Since(started) < limit; n++ {
		for i := 0; i < 20; i++ {
			t.patchConfigMap("g", fmt.Sprintf(`{"data":{"value":"%d","padding":"%s"}}`, n*20+i, padding))
		}
		s := t.open(wirePath + "?watch=1&timeoutSeconds=1&resourceVersion=" + text(old))
		if s == nil || t.report.violated() {
			return
		}
		var err error
		if event, err = s.next(t.prompt); err == nil && event.kind == "ERROR" {
			expired = true
			_, err = s.next(t.prompt)
			t.report.check(err == errStreamEnded, "R-521", "after the ERROR event: %v", err)
		}
		s.close()
	}
	if !t.report.check(expired, "setup", "revision %d is still in history after %v of writing; start the server with a small --history-window and --history-bytes", old, time.Since(started)) {
		return
	}
	t.report.check(digString(event.object, "kind") == "Status" && digString(event.object, "apiVersion") == "v1" && digNumber(event.object, "code") == 410 &&
		digString(event.object, "reason") == "Expired" && digString(event.object, "status") == "Failure", "H-411", "ERROR event: %.300s", event.raw)
	t.report.check(strings.HasPrefix(digString(event.object, "message"), fmt.Sprintf("too old resource version: %d (", old)), "R-125", "message of the ERROR event: %q", digString(event.object, "message"))

	// As a Table too.
	s := t.open(wirePath+"?watch=1&resourceVersion="+text(old), tableAccept)
	if s != nil {
		event, err := s.next(t.prompt)
		t.report.check(err == nil && event.kind == "ERROR" && digString(event.object, "kind") == "Status", "R-639", "ERROR in a Table watch: %v %.200s", err, event.raw)
		s.close()
	}
	// The informer then asks for the state at least as new as what it had: that works (H-411).
	s = t.open(wirePath + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion=" + text(old))
	t.expect("H-411", "WatchList at an expired revision", s, sevenAdded...)
	t.endBookmark("H-411", "WatchList at an expired revision", s)
	s.close()
	list := t.wants(200, "GET", wirePath+"?resourceVersion="+text(old), "")
	t.report.check(len(namesOf(list)) == 7, "R-151", "list not older than an expired revision: %v", namesOf(list))
	t.refused("R-125", refusal{code: 410, reason: "Expired"}, "GET", wirePath+"?resourceVersionMatch=Exact&resourceVersion="+text(old), "")
	decoded := t.refused("R-125", refusal{code: 410, reason: "Expired", contains: "The provided continue parameter is too old to display a consistent list result."},
		"GET", wirePath+query("limit", "2", "continue", token), "")
	next := digString(decoded, "metadata", "continue")
	if t.report.check(next != "", "R-125", "410 for a continue token without a token to go on") {
		list := t.wants(200, "GET", wirePath+query("continue", next), "")
		t.report.check(fmt.Sprint(namesOf(list)) == "[c d e f g]", "R-125", "the token that came with 410 leads to %v", namesOf(list))
	}
	t.report.figure("secondsUntilExpired", int(time.Since(started).Seconds()))
}
