"""The bars of the CPU engine, measured: each op table of lacuna, in turn with its peers.

    python3 tests/bench/compare.py LACUNA MODEL [--peer-python PYTHON] [--llama-bench PROGRAM] ...

`make bench` starts it. Needs nothing but Python's own library. A peer that is not there is left out
and its lines say so:

  llama.cpp, by its Python bindings. In an environment of its own, built for this processor:
      python3 -m venv peer && CMAKE_ARGS=-DGGML_NATIVE=ON peer/bin/pip install llama-cpp-python
      make bench PEER_PYTHON=peer/bin/python

  any llama-bench, of llama.cpp or of ik_llama.cpp. In its sources:
      cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --target llama-bench
      make bench LLAMA_BENCH=.../build/bin/llama-bench

Every program reads the same file with the same number of threads. A peer runs with whichever of its
settings (flash attention on or off, weights repacked at load or not) is fastest for a test. All
programs take turns, in another order each time, so that a machine whose speed drifts favours none;
a ratio is the median of the ratios of the pairs. Shares are lacuna's own: of the least time that
the ceilings allow, which it measures directly before and after each test.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict, namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))

Test = namedtuple("Test", "name kind tokens depth sequences")
SHORT = [
    Test("prefill 512", "prefill", 512, 0, 1),
    Test("decode at 0", "decode", 64, 0, 1),
    Test("16 sequences", "decode", 64, 0, 16),
]
LONG = [
    Test("prefill 8,192", "prefill", 8192, 0, 1),
    Test("decode at 7,900", "decode", 64, 7900, 1),
]
CHOOSING = {8192: 2048, 7900: 2048}  # lengths at which a peer's settings are chosen


def note(text):
    print(text, file=sys.stderr, flush=True)


class Lacuna:
    def __init__(self, program, model, threads):
        self.program, self.model, self.threads = program, model, threads
        self.facts = {}

    def bench(self, table, *options):
        command = [self.program, "bench", self.model, "--json", "--threads", str(self.threads)]
        if table != "auto":
            command += ["--op-table", table]
        out = subprocess.run(command + list(options), capture_output=True, text=True)
        if out.returncode != 0:
            raise SystemExit(f"compare: {' '.join(command)}: {out.stderr.strip()}")
        result = json.loads(out.stdout)
        self.facts = {k: result[k] for k in ("numerics", "threads", "program", "processor")}
        return result

    def tables(self):
        """The op tables that serve here, without plain C."""
        found = []
        for name in ("avx2", "avx512f", "avx512_bf16"):
            command = [self.program, "bench", self.model, "--op-table", name, "--json"]
            options = ["--prompt", "1", "--depth", "none", "--repeats", "1"]
            if subprocess.run(command + options, capture_output=True).returncode == 0:
                found.append(name)
        return found

    def turn(self, table, tests, repeats):
        options = ["--repeats", str(repeats), "--reply", "64"]
        prompts = [str(t.tokens) for t in tests if t.kind == "prefill"]
        depths = [str(t.depth) for t in tests if t.kind == "decode" and t.sequences == 1]
        batches = [t.sequences for t in tests if t.sequences > 1]
        options += ["--prompt", ",".join(prompts), "--depth", ",".join(depths)]
        options += ["--batch", str(batches[0] if batches else 0)]
        lines = self.bench(table, *options)["tests"]
        return {test: self.line_of(test, lines) for test in tests}

    @staticmethod
    def line_of(test, lines):
        rows = {"prefill": min(test.tokens, 512), "decode": test.sequences}[test.kind]
        tokens = test.tokens * test.sequences
        for line in lines:
            if (line["kind"], line["tokens"]) == (test.kind, tokens) and line["rows"] == rows:
                return line
        raise SystemExit(f"compare: lacuna bench gave no line for {test.name}")


class LlamaCppPython:
    """llama-cpp-python in an interpreter of its own, which keeps the model loaded."""

    name = "llama.cpp"
    settings = [{"flash": True}, {"flash": False}]

    def __init__(self, python, model, threads):
        worker = os.path.join(HERE, "peer_llama_cpp.py")
        self.process = subprocess.Popen(
            [python, worker, model, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        first = self.process.stdout.readline()
        if not first:
            raise OSError(f"{python} cannot run llama-cpp-python")
        facts = json.loads(first)
        self.version = f"llama-cpp-python {facts['version']} ({facts['about']})"

    def measure(self, test, settings, repeats):
        request = dict(test._asdict(), settings=settings)
        rates = []
        for _ in range(repeats):
            print(json.dumps(request), file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
            if not answer:
                raise SystemExit(f"compare: {self.name} ended during {test.name} {settings}")
            rates.append(json.loads(answer)["tokens_per_s"])
        return statistics.median(rates)

    def can(self, test):
        return True


class LlamaBench:
    """A llama-bench program; one process a test. ik_llama.cpp's can repack weights at load."""

    def __init__(self, program, model, threads):
        self.program, self.model, self.threads = program, model, threads
        usage = subprocess.run([program, "--help"], capture_output=True, text=True).stdout
        if "--flash-attn" not in usage:
            raise OSError(f"{program} is no llama-bench")
        self.is_ik = "-rtr" in usage
        self.name = "ik_llama.cpp" if self.is_ik else "llama-bench"
        self.settings = [{"flash": f} for f in (True, False)]
        if self.is_ik:
            self.settings = [dict(s, repack=r) for s in self.settings for r in (True, False)]
        self.version = program

    def can(self, test):
        return test.sequences == 1 and test.depth == 0

    def measure(self, test, settings, repeats):
        command = [self.program, "-m", self.model, "-t", str(self.threads), "-o", "json"]
        command += ["-r", str(repeats), "-fa", str(int(settings["flash"]))]
        if self.is_ik:
            command += ["-rtr", str(int(settings["repack"]))]
        n = str(test.tokens)
        command += ["-p", n, "-n", "0"] if test.kind == "prefill" else ["-p", "0", "-n", n]
        out = subprocess.run(command, capture_output=True, text=True)
        if out.returncode != 0:
            raise SystemExit(f"compare: {' '.join(command)}: {out.stderr.strip()[-400:]}")
        result = json.loads(out.stdout[out.stdout.index("[") :])[-1]
        self.version = f"{self.name} {result['build_commit']} (build {result['build_number']})"
        return statistics.median(result["samples_ts"])


def open_peers(arguments):
    """Those that are there; the others with the reason."""
    peers, missing = [], {}
    for kind, name, program in (
        (LlamaCppPython, "llama.cpp", arguments.peer_python),
        (LlamaBench, "llama-bench", arguments.llama_bench),
    ):
        try:
            if not program:
                raise OSError("not given")
            peers.append(kind(program, arguments.model, arguments.threads))
        except OSError as e:
            missing[name] = f"not present ({e})"
    return peers, missing


def choose_settings(peer, test):
    """The fastest of the peer's settings for a test; long ones are chosen at a shorter length."""
    tried = test._replace(
        tokens=CHOOSING.get(test.tokens, test.tokens), depth=CHOOSING.get(test.depth, test.depth)
    )
    repeats = 2 if tried == test else 1
    rates = {json.dumps(s): peer.measure(tried, s, repeats) for s in peer.settings}
    best = max(rates, key=rates.get)
    note(f"  {peer.name}, {test.name}: {best} of {', '.join(f'{r:.1f}' for r in rates.values())}")
    return json.loads(best)


def take_turns(lacuna, tables, peers, settings, tests, repeats, pairs):
    """Per test: {program: [rate of each turn]} and {table: [line of each turn]}."""
    rates, lines = defaultdict(lambda: defaultdict(list)), defaultdict(lambda: defaultdict(list))
    for pair in range(pairs):
        programs = tables + peers
        at = pair % len(programs)
        for program in programs[at:] + programs[:at]:
            if isinstance(program, str):
                for test, line in lacuna.turn(program, tests, repeats).items():
                    rates[test][program].append(line["tokens_per_s"]["median"])
                    lines[test][program].append(line)
            else:
                for test in filter(program.can, tests):
                    chosen = settings[program.name, test.name]
                    rates[test][program.name].append(program.measure(test, chosen, repeats))
        note(f"  pair {pair + 1} of {pairs}: " + ", ".join(t.name for t in tests))
    return rates, lines


def spread(values, form="{:.1f}"):
    low, high = form.format(min(values)), form.format(max(values))
    return form.format(statistics.median(values)) + (f" ({low} to {high})" if low != high else "")


class Results:
    """Everything that was measured, and the rows of the table made of it."""

    def __init__(self, tables, peers, missing):
        self.tables, self.peers, self.missing = tables, peers, missing
        self.rates, self.lines, self.ops, self.sweep = {}, {}, {}, {}

    def add(self, rates, lines):
        self.rates.update(rates)
        self.lines.update(lines)

    def ratios(self, test, table, peer):
        pairs = zip(self.rates[test][table], self.rates[test][peer])
        return [ours / theirs for ours, theirs in pairs]

    def peer(self, kind):
        return next((p.name for p in self.peers if isinstance(p, kind)), None)

    # Cells of a row, by table.

    def times(self, test, kind):
        if test not in self.rates:
            return {table: "not measured" for table in self.tables}
        peer = self.peer(kind)
        if peer is None:
            why = self.missing.get("llama.cpp" if kind is LlamaCppPython else "llama-bench")
            return {table: why for table in self.tables}
        return {t: spread(self.ratios(test, t, peer), "{:.2f}x") for t in self.tables}

    def share(self, test, bound=None):
        """Of the ceiling that holds the test, or of `bound`."""
        if test not in self.lines:
            return {table: "not measured" for table in self.tables}
        cells = {}
        for table in self.tables:
            lines = self.lines[test][table]
            if bound is None:
                shares = [line["share"]["median"] for line in lines]
                held = statistics.mode(line["held_by"] for line in lines)
                cells[table] = f"{spread(shares, '{:.0%}')} of {held}"
            else:
                took = [line["allowed_s"][bound] / line["seconds"]["median"] for line in lines]
                cells[table] = f"{spread(took, '{:.0%}')} of {bound}"
        return cells

    def op_share(self, chosen):
        """Of the arithmetic ceiling: the ops in sum, of medians."""
        cells = {}
        for table in self.tables:
            lines = [line for line in self.ops[table] if chosen(line)]
            allowed = sum(line["allowed_s"]["compute"] for line in lines)
            took = sum(line["seconds"]["median"] for line in lines)
            rate = sum(line["flop"] for line in lines) / took / 1e9
            cells[table] = f"{allowed / took:.0%} of compute ({rate:.0f} GFLOP/s)"
        return cells

    def sweep_cells(self):
        cells = {table: "not measured" for table in self.tables}
        for table, result in self.sweep.items():
            pairs = [ratio for _, _, ratio in result["pairs"]]
            cells[table] = spread(pairs, "{:.2f}x")
        return cells

    def rows(self):
        p512, d0, together = SHORT
        p8k, d7900 = LONG
        fast = self.peer(LlamaBench) or "a llama-bench"
        yield "GEMM at the model's shapes, 512 rows", "80 %", "85 %", self.op_share(
            lambda line: line["kind"] == "product" and line["rows"] == 512
        )
        yield "attention, 8,192 causal", "70 %", "60 %", self.op_share(
            lambda line: line["kind"] == "attention" and line["rows"] == 512
        )
        yield "prefill 512", "70 %", "70 %", self.share(p512)
        yield "prefill 8,192", "65 %", "60 %", self.share(p8k)
        yield "prefill 512 vs llama.cpp", "2.5x", "2.5x", self.times(p512, LlamaCppPython)
        yield "prefill 8,192 vs llama.cpp", "3x", "4x", self.times(p8k, LlamaCppPython)
        yield f"prefill 512 vs {fast}", "-", "1.2x", self.times(p512, LlamaBench)
        yield f"prefill 8,192 vs {fast}", "1x", "2x", self.times(p8k, LlamaBench)
        yield "decode at 0 vs llama.cpp", "1x", "1x", self.times(d0, LlamaCppPython)
        yield f"decode at 0 vs {fast}", "-", "-", self.times(d0, LlamaBench)
        yield "decode at 0", "80 %", "80 %", self.share(d0)
        yield "decode at 7,900 vs llama.cpp", "2.5x", "2.5x", self.times(d7900, LlamaCppPython)
        yield "decode at 7,900", "-", "-", self.share(d7900)
        yield "16 sequences together", "60 %", "55 %", self.share(together, "compute")
        yield "16 sequences vs llama.cpp", "-", "-", self.times(together, LlamaCppPython)
        yield "a sweep vs llama-cpp-python with its prefix cache", "3x", "4x", self.sweep_cells()

    def markdown(self):
        heads = [f"`{t}`" for t in self.tables]
        rows = [["what", "bar, AVX2", "bar, AVX-512", *heads]]
        for what, avx2, avx512, cells in self.rows():
            rows.append([what, avx2, avx512, *(cells[t] for t in self.tables)])
        text = [table_text(rows), "\nTokens a second:\n"]
        programs = [*self.tables, *(p.name for p in self.peers)]
        rows = [["test", *(f"`{p}`" if p in self.tables else p for p in programs)]]
        for test, rates in self.rates.items():
            rows.append([test.name, *(spread(rates[p]) if p in rates else "-" for p in programs)])
        return "\n".join(text + [table_text(rows)])

    def json(self):
        return {
            "ops": {table: [brief(line) for line in lines] for table, lines in self.ops.items()},
            "sweep": self.sweep,
            "missing": self.missing,
            "tests": [
                {
                    "test": test.name,
                    "tokens_per_s": rates,
                    "turns": {t: [brief(v) for v in turns] for t, turns in self.lines[test].items()},
                }
                for test, rates in self.rates.items()
            ],
        }


def brief(line):
    """What a line of lacuna's says, without the counts that follow from its test."""
    kept = ("test", "held_by", "allowed_s")
    medians = {key: line[key]["median"] for key in ("seconds", "share")}
    return {**{key: line[key] for key in kept}, **medians}


def table_text(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines) + "\n"


def measure_sweep(arguments, table):
    """tests/bench/sweep.py, where llama-cpp-python is present."""
    note(f"sweep, {table}")
    command = [arguments.peer_python, os.path.join(HERE, "sweep.py")]
    command += [arguments.lacuna, arguments.model, "--threads", str(arguments.threads), "--json"]
    command += ["--op-table", table, "--pairs", str(arguments.sweep_pairs)]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if out.returncode != 0:
        note("  sweep.py failed; the line is left out")
        return None
    return json.loads(out.stdout)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lacuna", metavar="LACUNA", help="the program")
    parser.add_argument("model", metavar="MODEL", help="a GGUF file")
    parser.add_argument("--peer-python", metavar="PYTHON", help="has llama-cpp-python")
    parser.add_argument("--llama-bench", metavar="PROGRAM", help="llama.cpp's or ik_llama.cpp's")
    parser.add_argument("--op-table", metavar="LIST", help="with commas between (all that serve)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N")
    parser.add_argument("--pairs", type=int, default=5, metavar="N", help="turns of each (5)")
    parser.add_argument("--sweep-pairs", type=int, default=1, metavar="N", help="of the sweep (1)")
    parser.add_argument("--short", action="store_true", help="no long prompts and no sweep")
    parser.add_argument("--json", metavar="FILE", help="write everything that was measured there")
    parser.add_argument("--markdown", metavar="FILE", help="write the report there, too")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    lacuna = Lacuna(arguments.lacuna, arguments.model, arguments.threads)
    tables = arguments.op_table.split(",") if arguments.op_table else lacuna.tables()
    peers, missing = open_peers(arguments)
    results = Results(tables, peers, missing)
    note(f"op tables: {', '.join(tables)}; peers: {', '.join(p.name for p in peers) or 'none'}")
    for table in tables:
        note(f"ops, {table}")
        ops = lacuna.bench(table, "--ops", "--prompt", "none", "--depth", "none")
        results.ops[table] = ops["tests"]
    groups = [(SHORT, 3)] if arguments.short else [(SHORT, 3), (LONG, 1)]  # repeats in a turn
    for tests, repeats in groups:
        settings = {
            (p.name, t.name): choose_settings(p, t) for p in peers for t in tests if p.can(t)
        }
        results.add(
            *take_turns(lacuna, tables, peers, settings, tests, repeats, arguments.pairs)
        )
    if arguments.peer_python and not arguments.short:
        sweeps = {table: measure_sweep(arguments, table) for table in tables}
        results.sweep = {table: sweep for table, sweep in sweeps.items() if sweep}
    facts = dict(lacuna.facts, date=datetime.date.today().isoformat(), pairs=arguments.pairs)
    facts["peers"] = {p.name: p.version for p in peers}
    text = "\n".join(
        [
            f"{facts['processor']}, {facts['threads']} threads, {facts['date']}; lacuna "
            f"{facts['program']['commit']}, {facts['program']['compiler']}, {facts['numerics']}.",
            *(f"{name}: {version}" for name, version in facts["peers"].items()),
            *(f"{name}: {why}" for name, why in missing.items()),
            f"Medians of {arguments.pairs} turns, and their range.\n",
            results.markdown(),
        ]
    )
    print(text)
    if arguments.markdown:
        with open(arguments.markdown, "w", encoding="utf-8") as out:
            out.write(text)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump({"facts": facts, **results.json()}, out)
            out.write("\n")


if __name__ == "__main__":
    main()
