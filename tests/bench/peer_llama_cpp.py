"""Speed of llama.cpp through llama-cpp-python's low-level bindings, as llama-bench measures it.

    python3 peer_llama_cpp.py MODEL THREADS

One JSON request a line on standard input, one JSON answer a line on standard output; the first
answer says which build this is. Requests:

    {"kind": "prefill", "tokens": 512, "settings": {"flash": true}}
    {"kind": "decode", "tokens": 64, "depth": 0, "sequences": 1, "settings": {"flash": false}}

Answer: {"tokens_per_s": ...}. Token ids are arbitrary; nothing is sampled. Decoding behind a depth
keeps what stands before it for the next request. compare.py starts this program.
"""

import ctypes
import json
import os
import random
import sys
import time

import llama_cpp as ll

BATCH = 2048  # llama-bench's -b and -ub
UBATCH = 512
CONTEXT = 8192

quiet = ll.llama_log_callback(lambda level, text, data: None)


class Context:
    """A context of one setting, and how many positions of sequence 0 it holds."""

    def __init__(self, model, threads, flash, sequences):
        p = ll.llama_context_default_params()
        p.n_ctx = CONTEXT if sequences == 1 else 512 * sequences
        p.n_batch, p.n_ubatch, p.n_seq_max = BATCH, UBATCH, sequences
        p.n_threads = p.n_threads_batch = threads
        p.flash_attn_type = (
            ll.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else ll.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        self.context = ll.llama_init_from_model(model, p)
        if not self.context:
            raise SystemExit("llama.cpp: no context")
        vocabulary = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(model))
        draw = random.Random(1)
        self.ids = [draw.randrange(vocabulary) for _ in range(CONTEXT)]
        self.length = 0

    def cut(self, length):
        memory = ll.llama_get_memory(self.context)
        if length == 0:
            ll.llama_memory_clear(memory, True)
        else:
            ll.llama_memory_seq_rm(memory, 0, length, -1)
        self.length = min(self.length, length)

    def decode(self, ids):
        array = (ll.llama_token * len(ids))(*ids)
        if ll.llama_decode(self.context, ll.llama_batch_get_one(array, len(ids))) != 0:
            raise SystemExit("llama.cpp: llama_decode failed")
        self.length += len(ids)

    def read(self, length):
        while self.length < length:
            self.decode(self.ids[self.length : min(length, self.length + BATCH)])
        ll.llama_synchronize(self.context)


class Peer:
    def __init__(self, path, threads):
        ll.llama_log_set(quiet, ctypes.c_void_p(0))
        ll.llama_backend_init()
        p = ll.llama_model_default_params()
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            p.use_extra_bufts = "amx" not in f.read()  # repacking into AMX tiles crashes
        self.model = ll.llama_model_load_from_file(path.encode(), p)
        if not self.model:
            raise SystemExit(f"llama.cpp: cannot load {path}")
        self.threads = threads
        self.contexts = {}

    def context(self, settings, sequences=1):
        key = (bool(settings["flash"]), sequences)
        if key not in self.contexts:
            self.contexts[key] = Context(self.model, self.threads, *key)
            self.contexts[key].decode([1] * 8)
            ll.llama_synchronize(self.contexts[key].context)
            self.contexts[key].cut(0)
        return self.contexts[key]

    def prefill(self, request):
        c = self.context(request["settings"])
        c.cut(0)
        begun = time.perf_counter()
        c.read(request["tokens"])
        return request["tokens"] / (time.perf_counter() - begun)

    def decode(self, request):
        c, n, depth = self.context(request["settings"]), request["tokens"], request["depth"]
        c.cut(depth)
        c.read(depth)
        begun = time.perf_counter()
        for i in range(n):
            c.decode([c.ids[depth + i]])
            ll.llama_synchronize(c.context)
        return n / (time.perf_counter() - begun)

    def decode_together(self, request):
        """One token of each sequence in a batch, from position 0."""
        n, sequences = request["tokens"], request["sequences"]
        c = self.context(request["settings"], sequences)
        c.cut(0)
        batch = ll.llama_batch_init(sequences, 0, 1)
        batch.n_tokens = sequences
        begun = time.perf_counter()
        for i in range(n):
            for s in range(sequences):
                batch.token[s], batch.pos[s] = c.ids[i + s], i
                batch.n_seq_id[s], batch.seq_id[s][0], batch.logits[s] = 1, s, 1
            if ll.llama_decode(c.context, batch) != 0:
                raise SystemExit("llama.cpp: llama_decode failed")
            ll.llama_synchronize(c.context)
        taken = time.perf_counter() - begun
        ll.llama_batch_free(batch)
        return n * sequences / taken

    def answer(self, request):
        if request["kind"] == "prefill":
            return self.prefill(request)
        return self.decode_together(request) if request["sequences"] > 1 else self.decode(request)


def main():
    # The library may print to standard output, where only answers belong.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = Peer(sys.argv[1], int(sys.argv[2]))
    about = ll.llama_print_system_info().decode().strip()
    print(json.dumps({"version": ll.__version__, "about": about}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps({"tokens_per_s": peer.answer(json.loads(line))}), file=answers, flush=True)


if __name__ == "__main__":
    main()
