"""Runs benches and returns one record for each case: {"case": name, "bench": group, "rounds": n, "vedette":
{field: median}, "<peer>": {...}}. If there is a peer, each round runs both, in alternating order, so that
both run under the same load."""
import json
import os
import re
import statistics
import subprocess
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.path.join(root, "build", "bench")
bench_of = lambda name: os.path.join(build, "bench", "bench_" + name)  # noqa: E731
vedette = os.path.join(build, "tools", "vedette", "vedette")
peers = os.path.join(build, "tests", "peers")
# As in production: the tests' etcd neither syncs nor has etcd's default heartbeat.
etcd_flags = ["--flag=" + flag for flag in ("--unsafe-no-fsync=false", "--heartbeat-interval=100", "--election-timeout=1000", "--quota-backend-bytes=8000000000")]


def build_release():
    if not os.path.exists(os.path.join(build, "build.ninja")):
        subprocess.run(["meson", "setup", build, root, "-Dbuildtype=release", "-Db_ndebug=true"], check=True, stdout=subprocess.DEVNULL)
    log = subprocess.run(["ninja", "-C", build, "bench", "tools/vedette/vedette", "tests/integration/kube_witness"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if log.returncode:
        sys.exit(log.stdout[-3000:])


def build_peers(*names):
    """Builds Go programs, pinned by the sums of their modules. Returns False, with the reason on stderr, if
    that is impossible here."""
    script = os.path.join(root, "tests", "integration", "build-peers.sh")
    source = os.path.join(root, "tests", "peers")
    arguments = {"cacher": [os.path.join(root, "bench", "peers", "cacher"), peers + "/cacher-bench"], "peers": [source, peers + "/peers"],
                 "etcd": [source + "/cmd/etcd", peers + "/etcd", "etcd"], "etcdctl": [source + "/cmd/etcd", peers + "/etcdctl", "etcdctl"]}
    for name in names:
        code = subprocess.run([script] + arguments[name]).returncode
        if code == 77:
            return False
        if code:
            sys.exit("%s does not build" % arguments[name][0])
    return True


def lines_of(command, environment=None):
    print("  " + " ".join(os.path.relpath(word, root) if word.startswith(root) else word for word in command), file=sys.stderr, flush=True)
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **(environment or {})))
    if child.returncode:
        print("bench/run: failed, what it had not come to is left as it was: " + " ".join(command), file=sys.stderr)
    return [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]


def medians(bench, lines):
    """lines: {"server", "case", number fields...}, of all rounds."""
    cases = {}
    for line in lines:
        cases.setdefault(line["case"], {}).setdefault(line["server"], []).append(line)
    for case, servers in cases.items():
        record = dict(case=case, bench=bench, rounds=max(len(lines) for lines in servers.values()))
        for server, rounds in servers.items():
            fields = {field for line in rounds for field, value in line.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}
            record[server] = {field: statistics.median(line[field] for line in rounds if field in line) for field in sorted(fields - ignored)}
            for field, value in rounds[-1].items():
                if isinstance(value, list):
                    record[server][field] = sum((line[field] for line in rounds), [])
        yield record


ignored = {"seed", "scale", "rounds", "together", "watchers", "connections", "objects", "bytes_parameter", "cpu_s", "wall_s"}


# ---- Names for the lines of a bench in C ----

def name_of(line):
    case, get = line["case"], line.get
    if case == "fan-out":
        return "delivery%s%s:%d" % ("" if line["sink"] == "dispatching" else "-consumer", "" if line["together"] == 8 else "-single", line["watchers"])
    if case == "list" and "what" in line:
        return "list:" + {"1 % by label, indexed": "label", "1 % by label, scanned": "scanned", "0.1 % by trigger field": "node", "one namespace of 100": "namespace",
                          "all": "all", "all, most recent": "latest"}.get(line["what"], line["what"])
    names = {
        "ingest": lambda: "ingest:%d" % line["together"], "ingest-size": lambda: "ingest-size:%d" % line["bytes"], "ingest-kind": lambda: "ingest-kind:" + line["kind"],
        "one-of": lambda: "one-of:%s:%d" % (line["by"], line["watchers"]),
        "idle-watcher": lambda: "idle" + {"equal": ""}.get(line["selectors"], ":" + line["selectors"]), "latency": lambda: "latency:" + line["stage"],
        "object-memory": lambda: "object:%d" % line["bytes"], "initial-sync": lambda: "sync:%d" % line["bytes"],
        "scale-sync": lambda: "scale-sync:%d" % line["of"], "scale-memory": lambda: "scale-memory:%d" % line["of"],
        "scale-list": lambda: "scale-list:%s:%d" % (line["what"], line["of"]),
        "http-delivery": lambda: "http-delivery:%d:%d" % (line["connections"], line["together"]), "http-size": lambda: "http-size:%d" % line["bytes"],
        "http-idle": lambda: "http-idle:%d%s" % (line["connections"], ":bookmarks" if line["bookmarks"] else ""),
        "http-list": lambda: "http-list:" + line["what"], "http-get": lambda: "http-get:" + {"most recent": "latest"}.get(line["what"], line["what"]),
        "catch-up": lambda: "catch-up:" + ("alone" if line["what"] == "alone" else "writing"),
        "put-p99": lambda: "put-p99:" + ("alone" if line["what"] == "a writer for itself" else "beside"),
        "replay-max": lambda: "replay:%d" % line["watches"],
    }
    if case in names:
        return names[case]()
    if case in ("memory-put", "durable-put"):
        return case + ":" + line["what"].replace(" blocking writers", "").replace(" in flight", "-flight")
    if get("client"):
        return ":".join([case] + [str(line[name]) for name in ("watches", "together", "how") if name in line])
    return case + (":" + line["what"] if "what" in line else "")


def renamed(lines, server="vedette"):
    for line in lines:
        line["case"] = name_of(line)
        line["server"] = server
    return lines


def by_turns(options, sides):
    """sides: [(server, function of a round that returns lines)]"""
    lines = []
    for number in range(options.rounds):
        for server, side in sides if number % 2 == 0 else sides[::-1]:
            print("round %d: %s" % (number + 1, server), file=sys.stderr, flush=True)
            lines += side(number)
    return lines


def one_round(options, number):
    return ["--rounds", "1", "--scale", str(options.scale), "--seed", str(options.seed + number)]


# ---- The groups ----

programs = {"delivery": ("fan-out", "ingest", "one-of", "idle-watcher", "latency", "stalled"), "objects": ("object-memory", "initial-sync", "list", "get", "scale")}
in_c = {"delivery": "fan-out", "delivery-single": "fan-out", "delivery-consumer": "fan-out", "delivery-consumer-single": "fan-out", "idle": "idle-watcher",
        "object": "object-memory", "sync": "object-memory"}


def run_cacher(options, case):
    """k8s.io/apiserver's Cacher in process: bench_delivery and bench_objects beside bench/peers/cacher."""
    has_peer = build_peers("cacher")
    stem = case.split(":")[0]
    wanted = in_c.get(stem, stem)

    def ours(number):
        lines = []
        for program, cases in programs.items():
            if not wanted or any(name.startswith(wanted) or wanted.startswith(name) for name in cases):
                lines += lines_of([bench_of(program)] + one_round(options, number) + ([wanted] if wanted else []))
        return renamed(lines)

    def theirs(number):
        return lines_of([peers + "/cacher-bench"] + one_round(options, number) + ([stem] if stem else []))

    return by_turns(options, [("vedette", ours)] + ([("apiserver", theirs)] if has_peer else []))


def run_http(options, case):
    """`vedette serve` from outside, beside upstream's handlers and registry over its Cacher: bench_http for
    both."""
    has_peer = build_peers("cacher")
    wanted = [case.split(":")[0]] if case else ["http-delivery", "http-size", "http-idle", "http-list", "http-get", "http-start", "http-stalled", "http-one-of"]
    side = lambda number, server, environment: renamed(lines_of([bench_of("http")] + one_round(options, number) + wanted, environment), server)  # noqa: E731
    return by_turns(options, [("vedette", lambda number: side(number, "vedette", {}))] +
                    ([("apiserver", lambda number: side(number, "apiserver", {"BENCH_SERVER": peers + "/cacher-bench"}))] if has_peer else []))


def run_outside(options, case):
    """Cases that need an etcd: the same two servers, durable; start, restart, rest, TLS. bench/outside.py for
    both."""
    if not build_peers("cacher", "peers", "etcd", "etcdctl"):
        return []
    return lines_of([peers + "/peers", "etcd-run"] + etcd_flags + ["--", sys.executable, os.path.join(root, "bench", "outside.py"), "--rounds", str(options.rounds),
                                                                  "--scale", str(options.scale), "--seed", str(options.seed)] + ([case] if case else []))


def run_etcd_server(options, case):
    """`vedette etcd` beside etcd, both durable, with the load of the same Go clients: bench/etcd-server.sh
    for both."""
    if not build_peers("peers", "etcd", "etcdctl"):
        return []
    return lines_of([peers + "/peers", "etcd-run"] + etcd_flags + ["--", os.path.join(root, "bench", "etcd-server.sh"), vedette, "--rounds", str(options.rounds),
                                                                  "--seed", str(options.seed), "--scale", str(options.scale)] + ([case] if case else []))


def run_etcd_server_grpc(options, case):
    """The same over gRPC C core."""
    if not build_peers("peers", "etcd", "etcdctl"):
        return []
    cases = [case] if case else ["put:64", "put:256", "range:64", "txn:64", "list", "watch:100", "watch:1000"]
    return lines_of([peers + "/peers", "etcd-run"] + etcd_flags + ["--", os.path.join(root, "bench", "etcd-server.sh"), vedette, "--rounds", str(options.rounds),
                                                                  "--scale", str(options.scale)] + cases, {"VEDETTE_RPC": "grpc", "LD_LIBRARY_PATH": os.path.join(build, "include")})


def run_etcd(options, case):
    """Our etcd client on a real etcd, beside etcd's own Go client."""
    if not build_peers("peers", "etcd", "etcdctl"):
        return []
    lines = lines_of([peers + "/peers", "etcd-bench", "--vedette", bench_of("etcd"), "--rounds", str(options.rounds), "--seed", str(options.seed), "--scale",
                      str(options.scale)] + ([case.split(":")[0]] if case else []))
    for line in lines:
        line["server"] = "goclient" if line.get("client") == "go" else "vedette"
        line["case"] = name_of(line)
    return lines


def run_kube(options, case):
    """An informer of vedette/kube.h beside client-go's, on a real kube-apiserver: bench/kube.py for both.
    KUBE_PEERS names the folder of a kube-apiserver that was built already (docs/HACKING.md)."""
    folder = os.environ.get("KUBE_PEERS", peers)
    if folder == peers and not build_peers("peers", "etcd", "etcdctl"):
        return []
    if not os.access(os.path.join(folder, "kube-apiserver"), os.X_OK):
        print("bench/run: no kube-apiserver in %s: left out" % folder, file=sys.stderr)
        return []
    return lines_of([sys.executable, os.path.join(root, "bench", "kube.py"), os.path.join(build, "tests", "integration", "kube_witness"), folder, "--rounds", str(options.rounds),
                     "--scale", str(options.scale), "--seed", str(options.seed)])


def run_alone(program):
    # cases of one program run
    in_one = {"memory-put": "memory", "durable-put": "durable", "durable-latency": "durable", "put-p99": "catch-up", "replay": "replay-max"}

    def run(options, case):
        case = in_one.get(case.split(":")[0], case)
        return by_turns(options, [("vedette", lambda number: renamed(lines_of([bench_of(program)] + one_round(options, number) + ([case.split(":")[0]] if case else []))))])
    return run


groups = {"cacher": run_cacher, "http": run_http, "outside": run_outside, "etcd-server": run_etcd_server, "etcd-server-grpc": run_etcd_server_grpc, "etcd": run_etcd, "kube": run_kube, "mvcc": run_alone("mvcc"),
          "replay": run_alone("replay"), "limits": run_alone("limits")}


def machine():
    model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo", encoding="utf-8").read())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return "%s, %d processors, %d GiB" % (model.group(1) if model else "unknown processor", os.cpu_count(), memory + 0.5)


def run(name, case, options):
    print("== %s %s" % (name, case), file=sys.stderr, flush=True)
    # cases that cannot run separately
    belongs = {"object": ("object:", "sync:"), "rest": ("rest",), "restart": ("restart", "resume")}.get(case, (case,))
    return [record for record in medians(name, groups[name](options, case)) if record["case"].startswith(belongs)]
