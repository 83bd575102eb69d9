"""Benches that run vedette and a peer by turns: what `bench/run` makes of the lines of all rounds, medians and a table of both side by side."""
import statistics

# By bench: the peer as lines name it, the table's heading, and its rows.
tables = {
    "etcd-server": dict(peer="etcd", name="etcd 3.7", heading="`vedette etcd` beside etcd 3.7 in the same run, both durable, loaded by the same Go clients", rows=[]),
    "cacher": dict(peer="apiserver", name="k8s.io/apiserver", heading="The cache beside k8s.io/apiserver's Cacher in the same run, in process", rows=[]),
}
rows = tables["etcd-server"]["rows"]


# What, case, field, unit, goal: "<= 18" for what vedette measures, ">= x1.4" for its ratio to the peer.
def row(what, case, field, unit, goal=None, divide=1):
    rows.append(dict(what=what, case=case, field=field, unit=unit, goal=goal, divide=divide))


for clients, many, cpu, p99 in ((1, ">= x1.4", None, None), (8, None, None, None), (64, ">= x1.8", "<= 18", None), (256, ">= x1.8", "<= 18", "<= 12"), (1000, None, None, None)):
    name = "put of 1 KB, %s client%s" % ("{:,}".format(clients), "" if clients == 1 else "s")
    row(name, "put:%d" % clients, "per_s", "a second", many)
    row(name + ": CPU", "put:%d" % clients, "cpu_us", "us", cpu)
    row(name + ": p99", "put:%d" % clients, "p99_us", "ms", p99, 1000)
for clients in (1, 64):
    name = "range of one key, %d client%s" % (clients, "" if clients == 1 else "s")
    row(name, "range:%d" % clients, "per_s", "a second")
    row(name + ": CPU", "range:%d" % clients, "cpu_us", "us")
row("transaction of a compare and a put, 64 clients", "txn:64", "per_s", "a second")
row("transaction of a compare and a put, 64 clients: CPU", "txn:64", "cpu_us", "us")
row("range of 10,000 keys of 1 KB", "list", "p50_ms", "ms")
row("range of 10,000 keys of 1 KB: CPU", "list", "cpu_ms", "ms", "<= 6")
for watchers in (1, 100, 1000, 10000):
    name = "an event to each of %s watcher%s" % ("{:,}".format(watchers), "" if watchers == 1 else "s")
    row(name, "watch:%d" % watchers, "events_per_s", "a second")
    row(name + ": CPU for each", "watch:%d" % watchers, "cpu_us_per_event", "us", "<= 2" if watchers >= 1000 else None)
row("put, 8 clients, 1,000 watchers 20 MB behind that do not read", "behind:1000", "per_s", "a second")
row("puts beside watchers that are behind: p99", "behind:1000", "p99_us", "ms", divide=1000)
row("puts beside watchers that are behind: failed", "behind:1000", "failed", "")
row("memory for 1,000 watchers that are behind", "behind:1000", "rss_more_kib", "MiB", divide=1024)
row("memory (RSS), empty", "idle", "rss_kib", "MiB", "<= 16", 1024)
row("memory with 100,000 keys of 1 KB", "keys:100000:1024", "rss_kib", "MiB", "<= 150", 1024)
row("memory after a start with 100,000 keys of 1 KB", "started:keys:100000:1024", "rss_kib", "MiB", None, 1024)
row("a start with 100,000 keys of 1 KB, until etcdctl has an answer", "start:keys:100000:1024", "ms", "ms")
row("memory with 1,000,000 keys of 100 bytes", "keys:1000000:100", "rss_kib", "MiB", None, 1024)
row("memory after a start with 1,000,000 keys of 100 bytes", "started:keys:1000000:100", "rss_kib", "MiB", None, 1024)
row("a start with 1,000,000 keys of 100 bytes, until etcdctl has an answer", "start:keys:1000000:100", "ms", "ms", "<= 1000")

rows = tables["cacher"]["rows"]
for watchers in (1, 10, 100, 1000, 10000):
    row("delivery, all of %s want it, 8 events at a time: CPU" % ("{:,} watchers".format(watchers) if watchers > 1 else "1 watcher"), "delivery:%d" % watchers, "value", "ns",
        "<= 25" if watchers >= 100 else "<= x1")
for by in ("trigger", "namespace", "field", "label"):
    for watchers in (10, 1000, 10000):
        row("event that one of %s watchers wants, by %s: CPU" % ("{:,}".format(watchers), by), "one-of:%s:%d" % (by, watchers), "value", "us", "<= 2" if watchers == 10000 else "<= x1")
row("idle watcher: heap and stacks", "idle", "value", "bytes", "<= 256")
for size in (1024, 4096):
    row("object of %d bytes of JSON, 100,000 of them: private memory" % size, "object:%d" % size, "value", "bytes", "<= %d" % (size * 13 // 10))
row("LIST of 100,000 objects of 1 KB: CPU", "list:all", "value", "ms", "<= 2")
row("LIST of 1 % by label: CPU", "list:label", "value", "ms", "<= 1")
row("LIST of one namespace of 100: CPU", "list:namespace", "value", "ms", "<= x1")
row("GET by name: CPU", "get", "value", "us", "<= 0.3")


def cacher_line(line):
    """A line of bench_delivery or bench_objects as one of the cacher's table; None: it has no place there."""
    names = {"fan-out": lambda: "delivery:%d" % line["watchers"] if (line["sink"], line["together"]) == ("dispatching", 8) else None,
             "one-of": lambda: "one-of:%s:%d" % (line["by"], line["watchers"]),
             "idle-watcher": lambda: "idle" if line["selectors"] == "equal" else None,
             "object-memory": lambda: "object:%d" % line["bytes"],
             "list": lambda: {"all": "list:all", "1 % by label, indexed": "list:label", "one namespace of 100": "list:namespace"}.get(line["what"]),
             "get": lambda: "get"}
    case = names.get(line["case"], lambda: None)()
    return case and dict(server="vedette", case=case, value=line["value"])


def medians(bench, lines, machine):
    """One line for each case, out of those of all rounds and both servers."""
    cases = {}
    for line in lines:
        cases.setdefault(line["case"], {}).setdefault(line["server"], []).append(line)
    out = []
    for case, servers in cases.items():
        result = dict(bench=bench, case=case, machine=machine, rounds=max(len(lines) for lines in servers.values()))
        for server, rounds in servers.items():
            fields = {field for line in rounds for field, value in line.items() if not isinstance(value, str)}
            result[server] = {field: statistics.median(line[field] for line in rounds if field in line) for field in fields}
        out.append(result)
    return out


def number(value):
    return "{:,.0f}".format(value) if value >= 100 else "%.3g" % value


def met(goal, ours, ratio):
    if goal is None:
        return ""
    limit = goal.split()[1]
    value = ours
    if limit.startswith("x"):
        limit, value = limit[1:], ratio
    if value is None:
        return ""
    return "yes" if (value >= float(limit) if goal.startswith(">=") else value <= float(limit)) else "no"


def table(bench, lines, old):
    """The rows, with what old (the page's rows by heading and first cell) has where nothing was measured; None when there are none."""
    this = tables[bench]
    cases = {line["case"]: line for line in lines if line["bench"] == bench}
    out = []
    for entry in this["rows"]:
        line = cases.get(entry["case"], {})
        peer, ours = (line.get(server, {}).get(entry["field"]) for server in (this["peer"], "vedette"))
        if peer is None or ours is None:
            if (this["heading"], entry["what"]) in old:
                out.append(old[this["heading"], entry["what"]])
            continue
        peer, ours = peer / entry["divide"], ours / entry["divide"]
        ratio = ours / peer if peer else None
        goal = entry["goal"] or ""
        if "x" in goal:
            goal = goal.replace("x", "") + " x the peer's"
        cells = [entry["what"], number(peer) + " " + entry["unit"], number(ours) + " " + entry["unit"], "" if ratio is None else "%.2g" % ratio, goal, met(entry["goal"], ours, ratio)]
        out.append("| " + " | ".join(cell.strip() for cell in cells) + " |")
    return ["| Case | %s | vedette | Ratio | Goal | Met |" % this["name"], "|---|---|---|---|---|---|"] + out if out else None
