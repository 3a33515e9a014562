"""Trains the subjects of tests/engine/golden: tiny Llama models whose abilities are known.

Each learns one thing: prose without digits holds "The code is 4821." somewhere, the question behind
it is "What is the code?", the reply " 4821", or " none" where no code was given. A token is a byte
(id 256 ends the reply), so lengths and distances are bytes. Two layers of width 64.

  subject-full    sees everything: finds the code at any depth of up to 512 bytes
  subject-window  a token sees itself and the WINDOW - 1 before it, so that nothing farther than
                  2 * (WINDOW - 1) bytes from the last token of a prompt can have a part in the reply

The weights are trained in float32 with AdamW (Loshchilov & Hutter 2019), on the reply's bytes alone,
by a curriculum: lengths 64, 128, 256, 512; the next one when 95 % of the replies are right or the
stage has had its steps. They are stored as bf16, which is what the engine multiplies with. All
draws come from the seed; one thread, so that sums have one order. Another jax version or another
processor may round differently and end with other bytes and the same abilities: the tests ask for
these.

  train_subjects.py full|window tests/engine/golden      (jax 0.10.2, numpy, gguf; on the CPU)

What came of it, in 10 and 16 minutes of a busy core (about 1,520 and 2,530 steps):
  subject-full    af5e79a7040b6571ce99a316bfd583ff8984efe4faef7ddac7766fcebed1874a
                  100 % at every distance
  subject-window  e2e3dfbf2c1ee8c3001425bc345585cdaa80fb0e8afbe68f45207952efad2368
                  100 % up to 120 bytes away, 63 to 72 % from there to 240, 0 % from 255 on
"""

import hashlib
import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

import reference
from make_golden import Writer

LAYERS, WIDTH, HEADS, HEAD, INNER, VOCABULARY, END = 2, 64, 4, 32, 128, 257, 256
EPSILON, BASE, CONTEXT = 1e-5, 10000.0, 512
WINDOWS = {"full": 0, "window": 128}
LENGTHS, REPLY = (64, 128, 256, 512), 6
QUESTION = "\n\nWhat is the code?"
ABSENT = 0.15  # share of prompts without a code
PROBE, PROBE_CODE = 500, 290  # tokens of a prompt for the engine's test, and where its code stands


# Texts ----------------------------------------------------------------------------------------------


def words_make(rng, count):
    letters = np.array(list("eeeeeeettttaaaaooooiiinnnsssrrrhhhlllddduuccmmwwffggyyppbbvkjxqz"))
    return ["".join(rng.choice(letters, rng.integers(2, 10))) for _ in range(count)]


def text_make(rng, sentences):
    """Sentences of invented words: what is learnt must not hang on the filler's own words."""
    words = words_make(rng, 3000) + ["the", "a", "and", "of", "was", "is", "in", "to", "it"] * 40
    out = []
    for _ in range(sentences):
        kind = rng.random()
        pick = [words[i] for i in rng.integers(0, len(words), rng.integers(2, 11))]
        if kind < 0.25:
            s = "The %s is %s." % (pick[0], pick[1])
        else:
            if kind > 0.7:
                pick[len(pick) // 2] += ","
            s = " ".join(pick)
            s = s[0].upper() + s[1:] + ("." if kind < 0.95 else "?" if kind < 0.975 else "!")
        out.append(s)
    return out


class Texts:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        sentences = text_make(self.rng, 60000)
        self.bytes = np.frombuffer(" ".join(sentences).encode(), np.uint8)
        self.ends = np.cumsum([len(s) + 1 for s in sentences]) - 1  # behind each sentence

    def one(self, length, row):
        """Fills row[length + REPLY] with a prompt and its reply. Returns whether it has a code."""
        rng = self.rng
        # Every second code has few digits of its own: "the one behind a 4" must not be enough.
        digits = rng.permutation(10)[: rng.integers(1, 4)] if rng.random() < 0.5 else range(10)
        code = "".join(str(d) for d in rng.choice(digits, 4))
        key = np.frombuffer(("The code is %s." % code).encode(), np.uint8)
        tail = np.frombuffer(QUESTION.encode(), np.uint8)
        present = rng.random() >= ABSENT
        room = length - len(tail) - (len(key) + 1 if present else 0)
        end = self.ends[rng.integers(len(self.ends) // 4, len(self.ends))]
        filler = self.bytes[end - room : end]
        if present:
            place = rng.random()  # at the end, at the start, or behind a sentence anywhere
            behind = 0 if place < 0.1 else rng.integers(0, length + 1)
            at = np.searchsorted(self.ends, end - behind)
            cut = room - (end - self.ends[at]) if behind else room
            if cut <= 0 or place > 0.93:
                parts = [key, np.frombuffer(b" ", np.uint8), filler]
            else:
                parts = [filler[:cut], np.frombuffer(b" ", np.uint8), key, filler[cut:]]
        else:
            parts = [filler]
        row[:length] = np.concatenate(parts + [tail])
        row[length:] = list((" " + code if present else " none").encode()) + [END]
        return present

    def batch(self, count, length):
        rows = np.zeros((count, length + REPLY), np.int32)
        return rows, np.array([self.one(length, r) for r in rows])


# Model ----------------------------------------------------------------------------------------------


def weights_make(seed):
    rng = np.random.default_rng(seed)

    def matrix(rows, columns, scale=1.0):
        return jnp.asarray(rng.normal(0, scale / np.sqrt(columns), (rows, columns)), jnp.float32)

    w = {"token_embd": jnp.asarray(rng.normal(0, 0.5, (VOCABULARY, WIDTH)), jnp.float32)}
    for n in range(LAYERS):
        b = "blk.%d." % n
        for name in ("attn_q", "attn_k", "attn_v"):
            w[b + name] = matrix(HEADS * HEAD, WIDTH)
        w[b + "attn_output"] = matrix(WIDTH, HEADS * HEAD)
        w[b + "ffn_gate"], w[b + "ffn_up"] = matrix(INNER, WIDTH), matrix(INNER, WIDTH)
        w[b + "ffn_down"] = matrix(WIDTH, INNER, 0.5)
        w[b + "attn_norm"] = w[b + "ffn_norm"] = jnp.ones(WIDTH)
    w["output_norm"] = jnp.ones(WIDTH)
    w["output"] = matrix(VOCABULARY, WIDTH)
    return w


def norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPSILON) * weight


def rotate(x, positions):
    """x [batch, T, HEADS, E]; pairs (2i, 2i+1)."""
    e = x.shape[-1]
    angle = positions[:, None] * BASE ** (-jnp.arange(0, e, 2) / e)
    c, s = jnp.cos(angle)[:, None, :], jnp.sin(angle)[:, None, :]
    a, b = x[..., 0::2], x[..., 1::2]
    return jnp.stack([a * c - b * s, b * c + a * s], -1).reshape(x.shape)


def forward(w, ids, window):
    """Logits that predict the last REPLY of ids[batch, T]; the last layer asks only there."""
    ids = ids[:, :-1]
    batch, t = ids.shape
    x, positions = w["token_embd"][ids], jnp.arange(t)
    for n in range(LAYERS):
        b = "blk.%d." % n
        first = t - REPLY if n == LAYERS - 1 else 0
        a = norm(x, w[b + "attn_norm"])
        q = (a[:, first:] @ w[b + "attn_q"].T).reshape(batch, t - first, HEADS, HEAD)
        k = (a @ w[b + "attn_k"].T).reshape(batch, t, HEADS, HEAD)
        v = (a @ w[b + "attn_v"].T).reshape(batch, t, HEADS, HEAD)
        q, k = rotate(q, positions[first:]), rotate(k, positions)
        s = jnp.einsum("bihe,bjhe->bhij", q, k) / np.sqrt(HEAD)
        i, j = positions[first:, None], positions[None, :]
        seen = (j <= i) & (j > i - window) if window else j <= i
        p = jax.nn.softmax(jnp.where(seen, s, -1e30), -1)
        o = jnp.einsum("bhij,bjhe->bihe", p, v).reshape(batch, t - first, HEADS * HEAD)
        x = x[:, first:] + o @ w[b + "attn_output"].T
        f = norm(x, w[b + "ffn_norm"])
        inner = jax.nn.silu(f @ w[b + "ffn_gate"].T) * (f @ w[b + "ffn_up"].T)
        x = x + inner @ w[b + "ffn_down"].T
    return norm(x, w["output_norm"]) @ w["output"].T


def make_step(window):
    def loss(w, ids):
        logits, want = forward(w, ids, window), ids[:, -REPLY:]
        each = -jnp.take_along_axis(jax.nn.log_softmax(logits), want[..., None], -1)[..., 0]
        return each.mean(), (logits.argmax(-1) == want).all(-1)

    @jax.jit
    def step(w, m, v, t, rate, ids):
        (cost, right), g = jax.value_and_grad(loss, has_aux=True)(w, ids)
        size = jnp.sqrt(sum(jnp.sum(x * x) for x in g.values()))
        g = {n: x * jnp.minimum(1.0, 1.0 / size) for n, x in g.items()}
        m = {n: 0.9 * m[n] + 0.1 * g[n] for n in w}
        v = {n: 0.98 * v[n] + 0.02 * g[n] ** 2 for n in w}
        for n in w:
            move = m[n] / (1 - 0.9**t) / (jnp.sqrt(v[n] / (1 - 0.98**t)) + 1e-9)
            decay = 0.01 * w[n] if w[n].ndim == 2 else 0.0
            w = {**w, n: w[n] - rate * (move + decay)}
        return w, m, v, cost, right

    return step


# Training -------------------------------------------------------------------------------------------

BATCH = {64: 64, 128: 32, 256: 16, 512: 8}
RATE, WARM, PASS, LAST = 3e-3, 100, 0.95, 600
STEPS_MOST = {64: 700, 128: 700, 256: 400, 512: 400}  # where a window keeps it from passing


def train(kind, seed=11):
    window = WINDOWS[kind]
    texts, w, step = Texts(seed), weights_make(seed), make_step(window)
    m = {n: jnp.zeros_like(x) for n, x in w.items()}
    v, stage, share, since, begin = dict(m), 0, 0.0, 0, time.time()
    t, left = 0, None  # left: steps that follow the last stage, at a falling rate
    while left != 0:
        t += 1
        # Two steps of three at the stage's own length, the others at the shorter ones.
        short = stage > 0 and t % 3 == 0
        length = LENGTHS[texts.rng.integers(0, stage)] if short else LENGTHS[stage]
        ids, _ = texts.batch(BATCH[length], length)
        rate = RATE * min(1.0, t / WARM)
        if left is not None:
            rate *= left / LAST
        w, m, v, cost, right = step(w, m, v, float(t), rate, ids)
        if not short:
            share = 0.95 * share + 0.05 * float(right.mean())
            since += 1
        if t % 50 == 0:
            print("%s step %d length %d loss %.4f right %.3f, %.0f s"
                  % (kind, t, LENGTHS[stage], cost, share, time.time() - begin), flush=True)
        if left is not None:
            left -= 1
        elif since >= 60 and share > PASS or since == STEPS_MOST[LENGTHS[stage]]:
            if stage + 1 == len(LENGTHS):
                left = LAST
            else:
                stage, share, since = stage + 1, 0.0, 0
    return w


def curve(w, window, length, texts, rounds=20):
    """Share of right replies by the distance of the code's end from the prompt's, in tens."""
    f = jax.jit(lambda w, ids: (forward(w, ids, window).argmax(-1) == ids[:, -REPLY:]).all(-1))
    hits = {}
    for _ in range(rounds):
        ids, present = texts.batch(64, length)
        right = np.asarray(f(w, ids))
        for row, ok, here in zip(ids, right, present):
            text = bytes(b for b in row[:length].astype(np.uint8)).decode("latin-1")
            d = length - text.index("The code is ") - 17 if here else -1
            hits.setdefault(d // 20 * 20 if d >= 0 else -1, []).append(ok)
    return {d: (round(float(np.mean(x)), 3), len(x)) for d, x in sorted(hits.items())}


# File -----------------------------------------------------------------------------------------------


def spelling(byte):
    """GPT-2's alphabet: printable Latin-1 stands for itself, the rest from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    if byte in plain:
        return chr(byte)
    return chr(0x100 + sum(b not in plain for b in range(byte)))


def save(path, kind, w):
    g = Writer()
    g.key("general.architecture", "s", "llama")
    g.key("general.name", "s", "subject-" + kind)
    for name, value in [("context_length", CONTEXT + 64), ("embedding_length", WIDTH),
                        ("block_count", LAYERS), ("feed_forward_length", INNER),
                        ("attention.head_count", HEADS), ("attention.head_count_kv", HEADS), ("attention.key_length", HEAD),
                        ("attention.value_length", HEAD), ("rope.dimension_count", HEAD)]:
        g.key("llama." + name, "I", value)
    g.key("llama.rope.freq_base", "f", BASE)
    g.key("llama.attention.layer_norm_rms_epsilon", "f", EPSILON)
    if WINDOWS[kind]:
        g.key("llama.attention.sliding_window", "I", WINDOWS[kind])
    g.key("tokenizer.ggml.model", "s", "gpt2")
    g.key("tokenizer.ggml.pre", "s", "gpt-2")
    g.array("tokenizer.ggml.tokens", "s", [spelling(b) for b in range(256)] + ["<|endoftext|>"])
    g.array("tokenizer.ggml.token_type", "i", [1] * 256 + [3])
    g.array("tokenizer.ggml.merges", "s", [])
    g.key("tokenizer.ggml.eos_token_id", "I", END)
    g.key("tokenizer.ggml.add_bos_token", "?", False)
    for name, x in w.items():
        x = np.asarray(x, "<f4")
        if x.ndim == 1:
            g.tensor(name + ".weight", "F32", x.shape, x)
        else:
            g.tensor(name + ".weight", "BF16", x.shape[::-1], bf16(x))
    g.save(path)


def bf16(x):
    """Rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def reference_rows(path):
    """Logits of the last REPLY + 1 rows in float64, of a prompt that the test can make again."""
    text = bytes(97 + (i * i + 3 * i) % 26 for i in range(PROBE - len(QUESTION)))
    text += (QUESTION + " 4821").encode()
    text = text[:PROBE_CODE] + b" The code is 4821. " + text[PROBE_CODE + 19 :]
    return reference.Llama(path).logits([*text, END])[-REPLY - 1 :]


def main(kind, folder):
    path = os.path.join(folder, "subject-" + kind)
    w = train(kind)
    save(path + ".gguf", kind, w)
    reference_rows(path + ".gguf").astype("<f4").tofile(path + ".logits")
    print(hashlib.sha256(open(path + ".gguf", "rb").read()).hexdigest())
    for length in LENGTHS:
        print(length, curve(w, WINDOWS[kind], length, Texts(99)))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in WINDOWS:
        sys.exit(__doc__)
    main(*sys.argv[1:])
