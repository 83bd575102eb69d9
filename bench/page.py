"""Writes docs/PERFORMANCE.md and its plots from docs/performance/results.ndjson, which has one line for each
case."""
import json
import os

import goals
import textwrap

import misses
import plot
import runners

docs = os.path.join(runners.root, "docs")
folder = os.path.join(docs, "performance")
results = os.path.join(folder, "results.ndjson")


# ---- Figures ----

def load():
    if not os.path.exists(results):
        return {}
    return {(record["bench"], record["case"]): record for record in map(json.loads, open(results, encoding="utf-8"))}


def rounded(value):
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return float("%.5g" % value) if isinstance(value, float) else value


def keep(records):
    """Replaces the figures of these cases. The file is read again first, because another run may have changed
    other cases."""
    os.makedirs(folder, exist_ok=True)
    kept = load()
    for record in records:
        kept[record["bench"], record["case"]] = rounded(record)
    with open(results + ".new", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(kept[key], sort_keys=True) + "\n" for key in sorted(kept))
    os.rename(results + ".new", results)


def field_of(record, server, field):
    value = (record or {}).get(server, {}).get(field)
    return value if isinstance(value, (int, float)) else None


def limit_now(records, case):
    """case: of a limit, or case.field"""
    name, _, field = case.partition(".")
    return field_of(records.get(("limits", name)), "vedette", field or "value")


# ---- One row ----

class Figures:
    """The content of one row. Smaller is better, unless at_least."""

    def __init__(self, entry, records):
        self.entry = entry
        record = records.get((entry["bench"], entry["case"]))
        self.record = record
        of_peer = next((other for (_, case), other in sorted(records.items()) if case == entry["peer_case"] and entry["peer"] in other and
                        (entry["peer_case"] != entry["case"] or other["bench"] == entry["bench"])), None)
        self.value, self.peer = field_of(record, "vedette", entry["field"]), field_of(of_peer, entry["peer"], entry["peer_field"])
        if entry["bench"] == "cacher" and entry["case"] == "sync:1024":
            self.peer = field_of(records.get(("outside", "sync-etcd")), entry["peer"], entry["peer_field"])
        self.value = None if self.value is None else self.value * entry["times"]
        self.peer = None if self.peer is None else self.peer * entry["times"]
        self.ratio = self.value / self.peer if self.value is not None and self.peer and self.peer > 0 else None
        self.limit = entry["limit"]
        if isinstance(self.limit, tuple):
            now = limit_now(records, self.limit[0])
            self.limit = now and now * self.limit[1]
        self.yard = None
        limit = entry["yard"] and records.get(("limits", entry["yard"][0].partition(".")[0]))
        if limit and record and limit["date"] == record["date"]: # another day is another machine
            self.yard = limit_now(records, entry["yard"][0])
        self.judge()

    def judge(self):
        """Returns (missed, how). missed: by which factor, 1 or less if the goal is met; how: "", "ratio" or
        "machine"."""
        entry = self.entry
        self.missed, self.how = None, ""
        if self.value is None or (entry["goal"] is None and entry["ratio"] is None):
            return
        factor = lambda value, goal: (goal / value if entry["at_least"] else value / goal) if value > 0 else float("inf") if entry["at_least"] else 0.0  # noqa: E731
        if entry["ratio"] is not None:
            self.missed = factor(self.ratio, entry["ratio"]) if self.ratio else None
            return
        ways = [(factor(self.value, entry["goal"]), "")]
        if entry["recorded"] and self.ratio:
            ways.append((factor(self.ratio, entry["goal"] / entry["recorded"]), "ratio"))
        if self.yard:
            slower = self.yard / entry["yard"][1]
            ways.append((factor(self.value, entry["goal"] / slower if entry["at_least"] else entry["goal"] * slower), "machine"))
        self.missed, self.how = ways[0] if ways[0][0] <= 1 else min(ways)


def number(value):
    return "{:,.0f}".format(value) if abs(value) >= 100 else "%.3g" % value


def goal_text(entry):
    sign = ">= " if entry["at_least"] else "<= "
    if entry["ratio"] is not None:
        return sign + "%g x the peer's" % entry["ratio"]
    if entry["goal"] is None:
        return ""
    text = sign + number(entry["goal"])
    if entry["recorded"]:
        text += " (%.2g x)" % (entry["goal"] / entry["recorded"])
    return text


def met_text(figures):
    if figures.missed is None:
        return ""
    if figures.missed <= 1:
        return {"": "yes", "ratio": "as a ratio", "machine": "for this machine"}[figures.how]
    return "**no**, %.2gx" % figures.missed


def cells_of(figures):
    entry, unit = figures.entry, (" " + figures.entry["unit"]).rstrip()
    peer = "" if figures.peer is None else number(figures.peer) + unit
    if entry["note"]:
        peer += (" (%s)" if peer else "%s") % entry["note"]
    scale = figures.record and figures.record.get("scale")
    what = entry["what"] + (" (scale %g)" % scale if scale else "")
    return [what, peer, "not run" if figures.value is None else number(figures.value) + unit, "" if figures.ratio is None else "%.2g" % figures.ratio, goal_text(entry),
            "" if not figures.limit else number(figures.limit), "" if not figures.limit or figures.value is None else "%.2gx" % (figures.value / figures.limit), met_text(figures)]


head = ["| Case | Peer | vedette | Ratio | Goal (as a ratio) | Limit | Of the limit | Met |", "|---|---|---|---|---|---|---|---|"]


def table_of(records):
    """Prints these cases on the terminal, known rows first."""
    known = {(record["bench"], record["case"]): record for record in records}
    merged = load()
    merged.update(known)
    lines = [" | ".join(cells_of(Figures(entry, merged))) for entry in goals.all_rows() if (entry["bench"], entry["case"]) in known]
    rest = set(known) - {(entry["bench"], entry["case"]) for entry in goals.all_rows()}
    return lines + ["%s:%s %s" % (key + (json.dumps({name: rounded(part) for name, part in known[key].items() if isinstance(part, dict)}),)) for key in sorted(rest)]


# ---- Scaling ----

def points_of(series, records):
    _, case, xs, server = series
    found = []
    for x in xs:
        record = next((record for (_, name), record in sorted(records.items()) if name == case % x and server in record), None)
        value = field_of(record, server, "value")
        if value is not None and value > 0:
            found.append((x, value))
    return found


def growth_of(entry, points):
    """Returns the growth of the total cost per growth of x, over the last measured decade or more: 1 is
    linear."""
    last = points[-1]
    first = max((point for point in points if point[0] <= last[0] / 10), default=points[0], key=lambda point: point[0])
    grown = last[1] / first[1]
    return first, last, (grown if entry["per_unit"] else grown / (last[0] / first[0]))


def scaling(records):
    out = []
    for entry in goals.plots:
        series = [(one[0], points_of(one, records)) for one in entry["series"]]
        drawing = plot.svg(entry["title"], entry["x"], entry["y"], series)
        if drawing is None:
            continue
        with open(os.path.join(folder, entry["file"] + ".svg"), "w", encoding="utf-8") as file:
            file.write(drawing)
        out += ["### " + entry["title"], "", "![%s](performance/%s.svg)" % (entry["title"], entry["file"]), "",
                "| " + " | ".join(["Series"] + ["%s %s" % (plot.short(x), entry["x"]) for x in sorted({x for _, points in series for x, _ in points})] + ["Growth, 1 is linear"]) + " |"]
        xs = sorted({x for _, points in series for x, _ in points})
        out.append("|---" * (len(xs) + 2) + "|")
        for name, points in series:
            if not points:
                continue
            growth = ""
            if len(points) > 1 and points[-1][0] >= 10 * points[0][0]:
                growth = "%.2g" % growth_of(entry, points)[2]
            values = dict(points)
            out.append("| %s | %s | %s |" % (name, " | ".join(number(values[x]) if x in values else "" for x in xs), growth))
        out.append("")
    return out


# ---- The page ----

def summary(rows):
    judged = [figures for figures in rows if figures.missed is not None]
    met = [figures for figures in judged if figures.missed <= 1]
    far = [figures for figures in judged if figures.missed > 2]
    behind = [figures for figures in rows if figures.ratio is not None and (figures.ratio < 1 if figures.entry["at_least"] else figures.ratio > 1)]
    wanting = [figures for figures in rows if figures.value is None and (figures.entry["goal"] is not None or figures.entry["ratio"] is not None)]
    absolute = [figures for figures in met if figures.how == ""]
    out = ["- %d rows have a goal and were measured; %d are met (%.0f %%), %d of them by the figure itself, the others as a ratio to the peer or to the machine in the same run." % (
        len(judged), len(met), 100 * len(met) / max(1, len(judged)), len(absolute)),
        "- Missed by more than a factor of 2: %s." % ("; ".join(figures.entry["what"] for figures in far) or "none"),
        "- Behind the peer: %s." % ("; ".join(figures.entry["what"] for figures in behind) or "none")]
    if wanting:
        out.append("- With a goal but without a figure: %s." % "; ".join(figures.entry["what"] for figures in wanting))
    return out


def write():
    records = load()
    os.makedirs(folder, exist_ok=True)
    dates = sorted({record["date"] for record in records.values()})
    machines = sorted({record["machine"] for record in records.values()})
    parts = [(part, [Figures(entry, records) for entry in part["rows"]]) for part in goals.sections]
    out = ["# Benchmarks", "",
           "`bench/run` writes this page from `performance/results.ndjson`. The top of `bench/bench_<name>.c`, "
           "`bench/outside.py` and `bench/etcd-server.sh` describes each case. "
           + ("Measured from %s to %s, on: %s." % (dates[0], dates[-1], "; ".join(machines)) if dates else ""), ""]
    out += summary([figures for _, rows in parts for figures in rows])
    out += ["", "How to read it:", "",
            "- Figures are medians of rounds in which the peer and vedette run in turn, in a release build. Most are CPU time (user "
            "and system): in process, of the threads that do the work; from outside, of the server's process. Elapsed times, "
            "latencies and everything that waits for the disk are noisy on a shared machine.",
            "- The peers are unmodified Go modules, built from pinned sums: k8s.io/apiserver 0.37, etcd 3.7, client-go.",
            "- Pods have 1 KB, the shape of real ones, and random values that do not compress.",
            "- A goal was set for the machine on which the peer was first recorded; the parentheses have it as a ratio to the peer. "
            "\"As a ratio\": the figure is above the goal, but so is the peer's above its recorded figure, and the ratio is met. "
            "\"For this machine\": there is no such peer, and the goal is met in proportion to the machine's own time for a write "
            "to a socket or an fdatasync, then and now.",
            "- Limit: the cost that cannot be avoided; for sockets and the disk it is measured in the same run (last table).", ""]
    for part, rows in parts:
        out += ["## " + part["name"], "", part["text"], ""] + head
        out += ["| " + " | ".join(cells_of(figures)) + " |" for figures in rows] + [""]
    missed = [(part, figures) for part, rows in parts for figures in rows if figures.missed is not None and figures.missed > 1]
    out += ["## Missed goals, with reasons", ""]
    said = set()
    for part, figures in missed:
        text = misses.reasons.get((figures.entry["bench"], figures.entry["case"]))
        if text is None:
            text = next((text for (bench, case), text in misses.reasons.items() if bench == figures.entry["bench"] and case.endswith("*") and
                         figures.entry["case"].startswith(case[:-1])), "No profile yet.")
        out.append("- %s (%.2gx)%s" % (figures.entry["what"], figures.missed, ": see above." if text in said else ": " + text))
        said.add(text)
    out += ["", "## Scaling", "", "Both axes are logarithmic. Growth: of the total cost per growth of the x axis, over the last measured decade or more.", ""]
    out += scaling(records)
    lines = []
    for line in "\n".join(out).split("\n"):
        if len(line) > 110 and not line.startswith("|"):
            lines += textwrap.wrap(line, 110, subsequent_indent="  " if line.startswith("- ") else "",
                                   break_on_hyphens=False, break_long_words=False)
        else:
            lines.append(line)
    out = lines
    with open(os.path.join(docs, "PERFORMANCE.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(out).replace("\n\n\n", "\n\n").rstrip() + "\n")
