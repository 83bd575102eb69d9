"""What `bench/run etcd-server` makes of the lines of bench/etcd-server.sh: medians of the rounds, vedette beside the etcd of the same run, and a table of them."""
import statistics

heading = "`vedette etcd` beside etcd 3.7 in the same run, both durable, loaded by the same Go clients"

# What, case, field, unit, goal: "<= 18" for what vedette measures, ">= x1.4" for its ratio to etcd.
rows = []


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


def medians(lines, machine):
    """One line for each case, out of those of all rounds and both servers."""
    cases = {}
    for line in lines:
        cases.setdefault(line["case"], {}).setdefault(line["server"], []).append(line)
    out = []
    for case, servers in cases.items():
        result = dict(bench="etcd-server", case=case, machine=machine, rounds=max(len(lines) for lines in servers.values()))
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


def table(lines, old):
    """The rows, with what old (the page's rows by heading and first cell) has where nothing was measured; None when there are none."""
    cases = {line["case"]: line for line in lines if line["bench"] == "etcd-server"}
    out = []
    for entry in rows:
        line = cases.get(entry["case"], {})
        peer, ours = (line.get(server, {}).get(entry["field"]) for server in ("etcd", "vedette"))
        if peer is None or ours is None:
            if (heading, entry["what"]) in old:
                out.append(old[heading, entry["what"]])
            continue
        peer, ours = peer / entry["divide"], ours / entry["divide"]
        ratio = ours / peer if peer else None
        goal = entry["goal"] or ""
        if "x" in goal:
            goal = goal.replace("x", "") + " x etcd's"
        cells = [entry["what"], number(peer) + " " + entry["unit"], number(ours) + " " + entry["unit"], "" if ratio is None else "%.2f" % ratio, goal, met(entry["goal"], ours, ratio)]
        out.append("| " + " | ".join(cell.strip() for cell in cells) + " |")
    return ["| Case | etcd 3.7 | vedette | Ratio | Goal | Met |", "|---|---|---|---|---|---|"] + out if out else None
