#!/usr/bin/env python3
"""Times a sweep against llama-cpp-python: the same prompt ids, in the same order, greedy.

    tests/bench/sweep.py build/release/lacuna MODEL.gguf [--set KEY=VALUE ...] [--pairs N] [--json]

`lacuna run tests/bench/sweep.yaml` is timed as a whole: planning, loading, recording, the report.
Then llama_cpp.Llama gets the prompts in plan order, which is their order by ids, and keeps what a
prompt has in common with the one before; loading is not counted for it. Its settings (flash
attention, weights reordered for the processor) are tried on a few prompts, each in a process of its
own as some crash on some processors; the fastest serves. Needs the package llama-cpp-python.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SWEEP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sweep.yaml")
TRIED_PROMPTS = 3


def arguments():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("lacuna")
    p.add_argument("model")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                   help="as of lacuna run: repeats=1 makes a short sweep")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--op-table", metavar="NAME", help="as of lacuna run")
    p.add_argument("--pairs", type=int, default=1, help="how often both run in turn (1)")
    p.add_argument("--json", action="store_true", help="for programs")
    p.add_argument("--peer", help=argparse.SUPPRESS)  # of the processes that this one starts
    return p.parse_args()


def lacuna(a, verb, *words):
    overrides = ["models[0].path=" + os.path.abspath(a.model)] + a.set
    words = [a.lacuna, verb, SWEEP, *words] + [w for o in overrides for w in ("--set", o)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):  # 3: a question that so few repeats cannot decide
        raise SystemExit(done.stderr)
    return done.stdout


def prompts(a):
    """Ids of all prompts, equal ones once."""
    ids = []
    for key in json.loads(lacuna(a, "plan", "--json"))["keys"]:
        shown = json.loads(lacuna(a, "prompt", key, "--json"))["ids"]
        if not ids or shown != ids[-1]:
            ids.append(shown)
    assert ids == sorted(ids)
    return ids


def time_lacuna(a):
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        begun = time.monotonic()
        table = ["--op-table", a.op_table] if a.op_table else []
        lacuna(a, "run", "-o", run, "--threads", str(a.threads), *table)
        seconds = time.monotonic() - begun
        with open(os.path.join(run, "resolved.json")) as f:
            most = json.load(f)["generation"]["max_tokens"]
        with open(os.path.join(run, "trials.jsonl")) as f:
            replies = sum(json.loads(line)["reply"]["tokens"] for line in f)
    return seconds, replies, most


def open_peer(a, setting):
    from llama_cpp import Llama, llama_cpp

    flash, reordered = setting
    defaults = llama_cpp.llama_model_default_params

    def parameters():
        p = defaults()
        p.use_extra_bufts = reordered
        return p

    llama_cpp.llama_model_default_params = parameters
    return Llama(a.model, n_ctx=4096, n_batch=512, n_ubatch=512, n_threads=a.threads,
                 n_threads_batch=a.threads, flash_attn=flash, verbose=False)


def serve_peer(a):
    """In a process of its own: ids and the longest reply come in, seconds and reply tokens go out."""
    import llama_cpp

    model = open_peer(a, json.loads(a.peer))
    vocabulary = llama_cpp.llama_model_get_vocab(model._model.model)
    given = json.load(sys.stdin)
    begun, replies = time.monotonic(), 0
    for prompt in given["prompts"]:
        # generate() computes what the prompt does not have in common with what was computed last.
        for n, token in enumerate(model.generate(prompt, temp=0.0, repeat_penalty=1.0), 1):
            if llama_cpp.llama_vocab_is_eog(vocabulary, token):
                break
            replies += 1
            if n == given["most"]:
                break
    print(json.dumps([time.monotonic() - begun, replies]))


def time_peer(a, setting, ids, most):
    words = [sys.executable, __file__, a.lacuna, a.model, "--threads", str(a.threads),
             "--peer", json.dumps(setting)]
    done = subprocess.run(words, input=json.dumps({"prompts": ids, "most": most}), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        return None
    return json.loads(done.stdout.splitlines()[-1])


def best_setting(a, ids, most):
    """The fastest on a few prompts from the middle, with what it took."""
    few = ids[len(ids) // 2:][:TRIED_PROMPTS]
    took = {}
    for setting in [(flash, reordered) for flash in (True, False) for reordered in (True, False)]:
        result = time_peer(a, setting, few, most)
        if result is not None:
            took[setting] = result[0]
    if not took:
        raise SystemExit("llama-cpp-python runs with no setting; is the package installed?")
    return min(took, key=took.get), took


def main():
    a = arguments()
    if a.peer:
        return serve_peer(a)
    ids = prompts(a)
    pairs, setting, took = [], None, None
    for _ in range(a.pairs):
        ours, our_replies, most = time_lacuna(a)
        if setting is None:
            setting, took = best_setting(a, ids, most)
        theirs, their_replies = time_peer(a, setting, ids, most)
        pairs.append((ours, theirs, theirs / ours))
        if not a.json:
            print(f"lacuna {ours:.1f} s ({our_replies} reply tokens), llama-cpp-python {theirs:.1f} s "
                  f"({their_replies}): {theirs / ours:.2f} times", flush=True)
    ours, theirs, ratio = (statistics.median(column) for column in zip(*pairs))
    if a.json:
        print(json.dumps({"prompts": len(ids), "prompt_tokens": sum(map(len, ids)),
                          "flash_attention": setting[0], "reordered_weights": setting[1],
                          "lacuna_s": ours, "peer_s": theirs, "ratio": ratio,
                          "pairs": [list(p) for p in pairs]}))
        return None
    print(f"{len(ids)} prompts of {sum(map(len, ids))} tokens, {len(pairs)} pairs: medians {ours:.1f} s and "
          f"{theirs:.1f} s, ratio {ratio:.2f}; the peer with flash attention {'on' if setting[0] else 'off'}, "
          f"weights {'reordered' if setting[1] else 'as stored'}")
    return None


if __name__ == "__main__":
    main()
