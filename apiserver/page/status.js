"use strict";
// The status page: reads /debug/vedette and /metrics every two seconds and shows what changed. No library, nothing from elsewhere.
const PERIOD_MS = 2000;
let last = null;

const element = id => document.getElementById(id);
const count = n => n.toLocaleString("en-US");

function bytes(n) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	while (n >= 1024 && i < units.length - 1) {
		n /= 1024;
		i++;
	}
	return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}

function span(seconds) {
	if (seconds < 120)
		return seconds + " s";
	return seconds < 7200 ? Math.round(seconds / 60) + " min" : (seconds / 3600).toFixed(1) + " h";
}

// Prometheus text -> {resource: {stage: {le: count}}} of the dispatch histogram.
function stages(text) {
	const found = {};
	const line = /^apiserver_watch_events_dispatch_duration_seconds_bucket\{([^}]*)\} (\d+)/gm;
	for (let match; (match = line.exec(text));) {
		const label = {};
		for (const pair of match[1].matchAll(/(\w+)="([^"]*)"/g))
			label[pair[1]] = pair[2];
		const resource = label.group ? label.resource + "." + label.group : label.resource;
		((found[resource] ??= {})[label.stage] ??= []).push([label.le === "+Inf" ? Infinity : Number(label.le), Number(match[2])]);
	}
	return found;
}

// Upper bound of the bucket that holds the 99th of a hundred events.
function p99(buckets) {
	if (!buckets || !buckets.length)
		return "";
	const all = buckets[buckets.length - 1][1];
	if (!all)
		return "";
	for (const [bound, below] of buckets) {
		if (below >= all * 0.99)
			return bound === Infinity ? "> 5 s" : bound < 1 ? "≤ " + Number((bound * 1000).toPrecision(3)) + " ms" : "≤ " + bound + " s";
	}
	return "";
}

function cell(row, text, kind) {
	const td = row.insertCell();
	td.textContent = text;
	if (kind)
		td.className = kind;
	return td;
}

function empty(body, columns, text) {
	const td = cell(body.insertRow(), text, "none");
	td.colSpan = columns;
}

function tile(value, name) {
	const div = document.createElement("div"), b = document.createElement("b"), small = document.createElement("span");
	b.textContent = value;
	small.textContent = name;
	div.append(b, small);
	return div;
}

function rate(now, key) {
	if (!last || now[key] < last.dump[key])
		return "";
	const seconds = (now.at - last.dump.at) / 1000;
	return seconds > 0 ? " (" + ((now[key] - last.dump[key]) / seconds).toFixed(0) + "/s)" : "";
}

function history(h) {
	return h.events ? count(h.events) + (h.events === 1 ? " event, " : " events, ") + bytes(h.bytes) + ", " + span(h.spanSeconds) + " from " + count(h.oldest) : "empty";
}

function showResources(dump, timing) {
	const body = document.createElement("tbody"), busy = element("busy").checked;
	for (const r of dump.resources) {
		if (busy && !r.objects && !r.watchers.count)
			continue;
		const row = body.insertRow(), stage = timing[r.resource] || {};
		const ended = Object.values(r.watchers.ends).reduce((a, b) => a + b, 0);
		const failed = r.watchers.ends.expired + r.watchers.ends.too_slow + r.watchers.ends.error;
		cell(row, r.resource);
		cell(row, r.state, r.ready ? "good" : "bad");
		cell(row, count(r.resourceVersion), "n");
		cell(row, count(r.objects), "n");
		cell(row, bytes(r.objectBytes), "n");
		cell(row, history(r.history), r.history.events ? "" : "none");
		cell(row, count(r.watchers.count), "n");
		cell(row, count(r.watchers.behind), r.watchers.behind ? "n bad" : "n none");
		cell(row, failed ? count(ended) + ", " + count(failed) + " too late" : count(ended), failed ? "n bad" : "n none");
		cell(row, p99(stage.storage_to_cache), "n");
		cell(row, p99(stage.total), "n");
	}
	if (!body.rows.length)
		empty(body, 11, "nothing yet");
	element("resources").replaceChild(body, element("resources").tBodies[0]);
}

function scope(w) {
	const parts = [];
	if (w.namespace || w.name)
		parts.push((w.namespace || "*") + "/" + (w.name || "*"));
	if (w.labelSelector)
		parts.push("labels " + w.labelSelector);
	if (w.fieldSelector)
		parts.push("fields " + w.fieldSelector);
	return parts.join(", ") || "everything";
}

function showWatchers(dump) {
	const body = document.createElement("tbody"), rows = [];
	for (const r of dump.resources)
		for (const w of r.watchers.slowest)
			rows.push([r.resource, w]);
	rows.sort((a, b) => b[1].lagBytes - a[1].lagBytes || b[1].lagEvents - a[1].lagEvents);
	for (const [resource, w] of rows.slice(0, 20)) {
		const row = body.insertRow();
		cell(row, resource);
		cell(row, scope(w) + (w.watchers > 1 ? " (" + count(w.watchers) + " watches)" : ""));
		cell(row, w.state);
		cell(row, count(w.lagEvents), "n");
		cell(row, bytes(w.lagBytes), "n");
	}
	if (!rows.length)
		empty(body, 5, "no watches");
	element("watchers").replaceChild(body, element("watchers").tBodies[0]);
}

function showTrouble(dump) {
	const list = element("trouble").querySelector("ul");
	list.replaceChildren();
	for (const r of dump.resources)
		for (const key of r.quarantined.keys) {
			const li = document.createElement("li");
			li.textContent = typeof key === "string" ? key : key.key + (key.reason ? ": " + key.reason : "");
			list.append(li);
		}
	element("trouble").hidden = !list.children.length;
}

function show(dump, timing) {
	const ready = dump.resources.filter(r => r.ready).length, all = dump.resources.length;
	element("version").textContent = dump.version;
	element("summary").textContent = dump.address + (dump.draining ? " is shutting down" : "") + ", " +
		(ready === all ? "all " + all + " caches ready" : ready + " of " + all + " caches ready") + ", revision " + count(dump.store.current);
	element("tiles").replaceChildren(
		tile(count(dump.resources.reduce((n, r) => n + r.objects, 0)), "objects"),
		tile(bytes(dump.resources.reduce((n, r) => n + r.objectBytes, 0)), "of objects"),
		tile(count(dump.watches), "watches"),
		tile(count(dump.connections), "connections"),
		tile(count(dump.requests) + rate(dump, "requests"), "requests"),
		tile(count(dump.watchEvents) + rate(dump, "watchEvents"), "watch events sent"),
		tile(bytes(dump.resources.reduce((n, r) => n + r.history.bytes, 0)), "of history"));
	showResources(dump, timing);
	showWatchers(dump);
	showTrouble(dump);
	element("age").textContent = "read " + new Date(dump.at).toLocaleTimeString();
	element("age").className = "";
	document.body.dataset.live = "yes";
}

async function round() {
	try {
		const [dumped, metrics] = await Promise.all([fetch("/debug/vedette"), fetch("/metrics")]);
		if (!dumped.ok || !metrics.ok)
			throw new Error("HTTP " + (dumped.ok ? metrics : dumped).status);
		const dump = await dumped.json();
		dump.at = Date.now();
		const timing = stages(await metrics.text());
		show(dump, timing);
		last = { dump, timing };
	} catch (error) {
		element("age").textContent = "no answer: " + error.message;
		element("age").className = "bad";
	}
	setTimeout(round, PERIOD_MS);
}

element("busy").addEventListener("change", () => last && showResources(last.dump, last.timing));
round();
