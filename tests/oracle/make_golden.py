"""Makes the golden files of tests/engine/golden and tests/kernels/golden, always the same bytes.

Small random Llama models in every tensor type and several head layouts, written by a GGUF writer
of its own; the logits of a fixed id sequence by reference.py in float64 (stored as float32), and the
shares of attention that its rows give to some ranges of positions; and for each tensor type some blocks of random bits with the values that they stand for. The blocks' own
values are checked against the `gguf` package bit for bit.

  make_golden.py TESTS_FOLDER
"""

import json
import os
import struct
import sys

import gguf
import numpy as np

import reference

TYPES = {name: (number, block, size) for number, (name, block, size) in reference.BLOCKS.items()}
VOCABULARY = 101  # odd on purpose: neither the panels nor the pairs of a kernel fit evenly
POSITIONS = 40
RANGES = [(0, 1), (3, 9), (14, 15), (20, 40)]


def half_bytes(values):
    return np.asarray(values, np.float16).view(np.uint8).reshape(-1, 2)


def random_blocks(rng, kind, n, reach):
    """n elements in about +-reach: every bit of the quants and the small scales is random."""
    _, block, size = TYPES[kind]
    if block == 1:
        x = rng.uniform(-reach, reach, n).astype(np.float32)
        if kind == "F32":
            return x.view(np.uint8)
        if kind == "F16":
            return x.astype(np.float16).view(np.uint8)
        return (x.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    b = rng.integers(0, 256, (n // block, size), np.uint8)
    count = len(b)
    sign = rng.choice([-1.0, 1.0], count)
    vary = rng.uniform(0.7, 1.3, count)

    def scale(step):
        return half_bytes(reach * vary * step)

    if kind == "Q8_0":
        b[:, 0:2] = half_bytes(sign * reach * vary / 127)
    elif kind in ("Q4_0", "Q5_0"):
        b[:, 0:2] = half_bytes(sign * reach * vary / (8 if kind == "Q4_0" else 16))
    elif kind in ("Q4_1", "Q5_1"):
        b[:, 0:2] = half_bytes(sign * reach * vary * 2 / (15 if kind == "Q4_1" else 31))
        b[:, 2:4] = half_bytes(-sign * reach * vary)
    elif kind in ("Q4_K", "Q5_K"):
        top = 15 if kind == "Q4_K" else 31
        b[:, 0:2] = scale(4 / top / 63)
        b[:, 2:4] = scale(2 / 63)
    else:  # Q6_K
        b[:, 208:210] = half_bytes(sign * reach * vary / 32 / 64)
    return b.reshape(-1)


class Writer:
    def __init__(self):
        self.keys, self.records, self.data = b"", b"", b""
        self.key_count = self.tensor_count = 0

    @staticmethod
    def string(s):
        s = s.encode()
        return struct.pack("<Q", len(s)) + s

    def key(self, name, kind, value):
        self.keys += self.string(name)
        if kind == "s":
            self.keys += struct.pack("<I", 8) + self.string(value)
        else:
            self.keys += struct.pack("<I" + kind, {"I": 4, "f": 6, "?": 7}[kind], value)
        self.key_count += 1

    def array(self, name, kind, values):
        self.keys += self.string(name)
        self.keys += struct.pack("<IIQ", 9, {"s": 8, "I": 4, "i": 5}[kind], len(values))
        for value in values:
            self.keys += self.string(value) if kind == "s" else struct.pack("<" + kind, value)
        self.key_count += 1

    def tensor(self, name, kind, shape, data):
        self.data += b"\0" * (-len(self.data) % 32)
        self.records += self.string(name) + struct.pack("<I", len(shape))
        self.records += b"".join(struct.pack("<Q", d) for d in shape)
        self.records += struct.pack("<IQ", TYPES[kind][0], len(self.data))
        self.data += data.tobytes()
        self.tensor_count += 1

    def save(self, path):
        out = struct.pack("<4sIQQ", b"GGUF", 3, self.tensor_count, self.key_count)
        out += self.keys + self.records
        out += b"\0" * (-len(out) % 32) + self.data
        with open(path, "wb") as f:
            f.write(out)


def write_model(path, seed, kind, L, D, H, G, E, F, small=None, own_head=False, llama3=False,
                linear=0.0, biases=False, window=0, base=10000.0, rotary=0, embedding=1.0):
    """`small`: the type of rows that are too short for the blocks of `kind`."""
    rng = np.random.default_rng(seed)
    rotary = rotary or E
    w = Writer()
    w.key("general.architecture", "s", "llama")
    w.key("general.name", "s", os.path.basename(path))
    for name, value in [("context_length", 2048), ("embedding_length", D), ("block_count", L),
                        ("feed_forward_length", F), ("attention.head_count", H),
                        ("attention.head_count_kv", G), ("rope.dimension_count", rotary)]:
        w.key("llama." + name, "I", value)
    if H * E != D:
        w.key("llama.attention.key_length", "I", E)
        w.key("llama.attention.value_length", "I", E)
    w.key("llama.attention.layer_norm_rms_epsilon", "f", 1e-5)
    w.key("llama.rope.freq_base", "f", base)
    if linear:
        w.key("llama.rope.scaling.type", "s", "linear")
        w.key("llama.rope.scaling.factor", "f", linear)
    if window:
        w.key("llama.attention.sliding_window", "I", window)

    def matrix(name, row, rows, reach):
        k = kind if row % TYPES[kind][1] == 0 else small
        w.tensor(name, k, (row, rows), random_blocks(rng, k, row * rows, reach))

    def vector(name, values):
        w.tensor(name, "F32", (len(values),), np.asarray(values, np.float32))

    matrix("token_embd.weight", D, VOCABULARY, embedding)
    if llama3:
        vector("rope_freqs.weight", reference.llama3_factors(base, rotary, 8.0, 1.0, 4.0, 64))
    for n in range(L):
        b = "blk.%d." % n
        vector(b + "attn_norm.weight", rng.uniform(0.7, 1.3, D))
        vector(b + "ffn_norm.weight", rng.uniform(0.7, 1.3, D))
        for name, row, rows in [("attn_q", D, H * E), ("attn_k", D, G * E), ("attn_v", D, G * E),
                                ("attn_output", H * E, D), ("ffn_gate", D, F), ("ffn_up", D, F),
                                ("ffn_down", F, D)]:
            matrix(b + name + ".weight", row, rows, np.sqrt(3.0 / row))
            if biases and name in ("attn_q", "attn_k", "attn_v"):
                vector(b + name + ".bias", rng.uniform(-0.5, 0.5, rows))
    vector("output_norm.weight", rng.uniform(0.7, 1.3, D))
    if own_head:
        matrix("output.weight", D, VOCABULARY, 4 * np.sqrt(3.0 / D))
    w.save(path)


SMALL = dict(L=1, D=64, H=4, G=2, E=16, F=64)
BLOCK_256 = dict(L=1, D=256, H=1, G=1, E=32, F=32, small="Q8_0", embedding=0.3)
MODELS = {
    "type-f32": dict(SMALL, kind="F32", D=32, H=2, G=1),
    "type-f16": dict(SMALL, kind="F16"),
    "type-bf16": dict(SMALL, kind="BF16"),
    "type-q8_0": dict(SMALL, kind="Q8_0"),
    "type-q4_0": dict(SMALL, kind="Q4_0"),
    "type-q4_1": dict(SMALL, kind="Q4_1"),
    "type-q5_0": dict(SMALL, kind="Q5_0"),
    "type-q5_1": dict(SMALL, kind="Q5_1"),
    "type-q4_k": dict(BLOCK_256, kind="Q4_K"),
    "type-q5_k": dict(BLOCK_256, kind="Q5_K", own_head=True),
    "type-q6_k": dict(BLOCK_256, kind="Q6_K"),
    "heads-1-of-1-e32": dict(kind="Q8_0", L=2, D=32, H=1, G=1, E=32, F=64),
    "heads-3-of-3-e32-own": dict(kind="Q5_1", L=2, D=96, H=3, G=3, E=32, F=32, own_head=True),
    "heads-4-of-2-e16-bias": dict(kind="Q8_0", L=2, D=64, H=4, G=2, E=16, F=32, biases=True),
    "heads-3-of-1-e64": dict(kind="Q4_1", L=2, D=64, H=3, G=1, E=64, F=64),
    "heads-2-of-1-e64-wide": dict(kind="Q5_0", L=2, D=64, H=2, G=1, E=64, F=96, own_head=True),
    "heads-6-of-2-e16-short": dict(kind="Q8_0", L=1, D=128, H=6, G=2, E=16, F=64, embedding=0.3),
    "rope-llama3": dict(kind="Q8_0", L=2, D=64, H=2, G=1, E=32, F=64, llama3=True, base=500000.0),
    "rope-linear": dict(kind="Q8_0", L=2, D=64, H=2, G=1, E=32, F=64, linear=4.0),
    "rope-partial": dict(kind="Q8_0", L=2, D=64, H=2, G=2, E=32, F=64, rotary=16),
    "window-7": dict(kind="Q8_0", L=2, D=64, H=2, G=1, E=32, F=64, window=7),
}


def make_models(folder):
    os.makedirs(folder, exist_ok=True)
    ids = [int(i) for i in np.random.default_rng(7).integers(0, VOCABULARY, POSITIONS)]
    for seed, (name, shape) in enumerate(MODELS.items()):
        path = os.path.join(folder, name)
        write_model(path + ".gguf", seed, **shape)
        reference.check(path + ".gguf")
        model = reference.Llama(path + ".gguf")
        logits = model.logits(ids)
        print("   logits of spread %.2f" % logits.std())
        logits.astype("<f4").tofile(path + ".logits")
        model.shares(ids, RANGES).astype("<f4").tofile(path + ".shares")
    with open(os.path.join(folder, "golden.json"), "w") as f:
        index = {"ids": ids, "vocabulary": VOCABULARY, "models": list(MODELS), "ranges": RANGES}
        json.dump(index, f, indent=2)
        f.write("\n")


def make_blocks(folder):
    """TYPE.blocks: raw bytes; TYPE.values: the float32 they stand for; all kinds of scales."""
    os.makedirs(folder, exist_ok=True)
    scales = np.array([1.0, -0.37, 6e-8, -3.1e-5, 0.0, -0.0, 65504.0, 0.0123], np.float16)
    for kind, (number, block, size) in TYPES.items():
        rng = np.random.default_rng(number)
        if kind == "F16":
            data = rng.integers(0, 256, 64 * size, np.uint8)
        elif block == 1:
            data = random_blocks(rng, kind, 64, 3.0)
        else:
            data = rng.integers(0, 256, (len(scales), size), np.uint8)
            two = kind in ("Q4_1", "Q5_1", "Q4_K", "Q5_K")
            at = [208] if kind == "Q6_K" else [0, 2] if two else [0]
            for i, column in enumerate(at):
                data[:, column : column + 2] = half_bytes(np.roll(scales, 3 * i))
        data = data.reshape(-1)
        values = reference.dequantize(number, data).astype("<f4").ravel()
        kind_of_package = gguf.GGMLQuantizationType(number)
        rows = data.reshape(-1, size) if block > 1 else data.view({2: "<u2", 4: "<f4"}[size])
        if kind == "F16":
            rows = rows.view("<f2")
            rows = rows[np.isfinite(rows.astype(np.float32))]
            data, values = rows.view(np.uint8), rows.astype("<f4")
        elif kind == "BF16":
            rows = data
        other = gguf.dequantize(rows, kind_of_package).astype("<f4").ravel()
        assert (other.view(np.uint32) == values.view(np.uint32)).all(), kind
        data.tofile(os.path.join(folder, kind + ".blocks"))
        values.tofile(os.path.join(folder, kind + ".values"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make_models(os.path.join(sys.argv[1], "engine", "golden"))
    make_blocks(os.path.join(sys.argv[1], "kernels", "golden"))
