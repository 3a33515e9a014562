"""Double-precision reference of the llama architecture, from the published formulas.

Independent of the C program: its own GGUF reader, its own dequantization from the description of
the block formats, and the forward pass in float64 with numpy. What it computes:

  h_0      = embedding[id]
  a        = RMSNorm(h) (Zhang & Sennrich 2019), weights and epsilon of the file
  q, k, v  = Wq a (+ bq), Wk a (+ bk), Wv a (+ bv)
  q, k     = rotated (Su et al. 2021): pair (2i, 2i+1) by position * base^(-2i/d) / factor_i
  o        = softmax(q k^T / sqrt(E), causal) v; G key/value heads serve H/G query heads each
             (Ainslie et al. 2023)
  h        = h + Wo o;  h = h + Wdown(silu(Wgate b) * (Wup b)) (Shazeer 2020), b = RMSNorm(h)
  logits   = head RMSNorm(h)

A weight is the float32 value that its format stands for; everything behind it is float64.

  reference.py check MODEL...                 own dequantization against the `gguf` package's
  reference.py logits MODEL IDS.json OUT.npy  logits [positions, V] of one or more sequences
"""

import json
import mmap
import struct
import sys

import numpy as np

BLOCKS = {  # type number: (name, elements of a block, bytes of a block)
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    30: ("BF16", 1, 2),
}
SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd"))


class Model:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.map = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 4
        version, tensors, keys = self._take("IQQ")
        assert self.map[:4] == b"GGUF" and version in (2, 3)
        self.keys = {}
        for _ in range(keys):
            name = self._string().decode()
            self.keys[name] = self._value(self._take("I")[0])
        records = []
        for _ in range(tensors):
            name = self._string().decode()
            (dims,) = self._take("I")
            shape = self._take("%dQ" % dims)
            records.append((name, shape) + self._take("IQ"))
        alignment = self.keys.get("general.alignment", 32)
        base = (self.at + alignment - 1) // alignment * alignment
        self.raw = {}
        for name, shape, kind, offset in records:
            _, block, size = BLOCKS[kind]
            n = int(np.prod(shape)) // block * size
            data = np.frombuffer(self.map, np.uint8, n, base + offset)
            self.raw[name] = (kind, tuple(int(d) for d in reversed(shape)), data)

    def _take(self, fmt):
        values = struct.unpack_from("<" + fmt, self.map, self.at)
        self.at += struct.calcsize("<" + fmt)
        return values

    def _string(self):
        (n,) = self._take("Q")
        self.at += n
        return self.map[self.at - n : self.at]

    def _value(self, kind):
        if kind == 8:
            return self._string()
        if kind == 9:
            element, count = self._take("IQ")
            return [self._value(element) for _ in range(count)]
        return self._take(SCALARS[kind])[0]

    def tensor(self, name):
        """float32, rows first; None when the file has no such tensor."""
        if name not in self.raw:
            return None
        kind, shape, data = self.raw[name]
        return dequantize(kind, data).reshape(shape)


def _half(two_bytes):
    return np.ascontiguousarray(two_bytes).view("<f2").astype(np.float32)


def _nibbles(q):
    """Low nibbles of a run of bytes, then the high ones."""
    return np.concatenate([q & 15, q >> 4], axis=-1)


def _fifth(b, width):
    """Bit i of a little-endian word, for i = 0 .. 31."""
    word = np.ascontiguousarray(b).view("<u4")
    return ((word >> np.arange(width, dtype=np.uint32)) & 1).astype(np.uint8) << 4


def _k_scales(s):
    """Six-bit scales and minima of the K formats from their twelve bytes."""
    low, mid, high = s[:, 0:4], s[:, 4:8], s[:, 8:12]
    scale = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], axis=1)
    minimum = np.concatenate([mid & 63, (high >> 4) | (mid >> 6 << 4)], axis=1)
    return scale.astype(np.float32), minimum.astype(np.float32)


def dequantize(kind, data):
    name, block, size = BLOCKS[kind]
    if name == "F32":
        return data.view("<f4").astype(np.float32)
    if name == "F16":
        return _half(data)
    if name == "BF16":
        return (data.view("<u2").astype(np.uint32) << 16).view(np.float32)
    b = data.reshape(-1, size)
    f = np.float32
    if name == "Q8_0":
        return _half(b[:, :2]) * b[:, 2:].view(np.int8).astype(f)
    if name == "Q4_0":
        return _half(b[:, :2]) * (_nibbles(b[:, 2:]).astype(f) - f(8))
    if name == "Q4_1":
        return _half(b[:, :2]) * _nibbles(b[:, 4:]).astype(f) + _half(b[:, 2:4])
    if name == "Q5_0":
        q = _nibbles(b[:, 6:]) | _fifth(b[:, 2:6], 32)
        return _half(b[:, :2]) * (q.astype(f) - f(16))
    if name == "Q5_1":
        q = _nibbles(b[:, 8:]) | _fifth(b[:, 4:8], 32)
        return _half(b[:, :2]) * q.astype(f) + _half(b[:, 2:4])
    if name in ("Q4_K", "Q5_K"):
        scale, minimum = _k_scales(b[:, 4:16])
        d, m = _half(b[:, 0:2]) * scale, _half(b[:, 2:4]) * minimum
        q = _nibbles(b[:, size - 128 :].reshape(-1, 4, 32)).reshape(-1, 8, 32)
        if name == "Q5_K":
            bits = b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[None, :, None]
            q = q | (bits & 1) << 4
        return d[:, :, None] * q.astype(f) - m[:, :, None]
    assert name == "Q6_K"
    low = _nibbles(b[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    shift = 2 * np.arange(4, dtype=np.uint8)[None, None, :, None]
    pairs = b[:, 128:192].reshape(-1, 2, 1, 32) >> shift
    q = (low | (pairs & 3) << 4).astype(f) - f(32)
    scale = _half(b[:, 208:]) * b[:, 192:208].view(np.int8).astype(f)
    return scale[:, :, None] * q.reshape(-1, 16, 16)


def llama3_factors(base, d, factor, low, high, original):
    """Divisors of the frequencies by Llama 3.1's rule."""
    frequency = base ** (-np.arange(0, d, 2, dtype=np.float64) / d)
    wavelength = 2 * np.pi / frequency
    blend = (original / wavelength - low) / (high - low)
    kept = np.where(
        wavelength < original / high,
        1.0,
        np.where(wavelength > original / low, 1 / factor, (1 - blend) / factor + blend),
    )
    return 1 / kept


class Llama:
    def __init__(self, path):
        m = self.file = Model(path)
        k = m.keys
        self.layers = k["llama.block_count"]
        self.heads = k["llama.attention.head_count"]
        self.groups = k.get("llama.attention.head_count_kv", self.heads)
        self.width = k.get("llama.attention.key_length", k["llama.embedding_length"] // self.heads)
        self.rotary = k.get("llama.rope.dimension_count", self.width)
        self.base = k.get("llama.rope.freq_base", 10000.0)
        self.epsilon = k["llama.attention.layer_norm_rms_epsilon"]
        self.window = k.get("llama.attention.sliding_window", 0)
        factors = m.tensor("rope_freqs.weight")
        self.factors = np.ones(self.rotary // 2) if factors is None else factors.astype(np.float64)
        scaling = k.get("llama.rope.scaling.type", b"none")
        assert scaling in (b"none", b"linear")
        if scaling == b"linear":
            self.factors = self.factors * k["llama.rope.scaling.factor"]

    def get(self, name):
        t = self.file.tensor(name)
        return None if t is None else t.astype(np.float64)

    def norm(self, x, name):
        mean = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(mean + self.epsilon) * self.get(name)

    def rotate(self, x):
        """x [T, heads, width]"""
        t, d = x.shape[0], self.rotary
        frequency = self.base ** (-np.arange(0, d, 2, dtype=np.float64) / d) / self.factors
        angle = np.arange(t, dtype=np.float64)[:, None] * frequency
        c, s = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
        out = x.copy()
        a, b = x[..., 0:d:2], x[..., 1:d:2]
        out[..., 0:d:2] = a * c - b * s
        out[..., 1:d:2] = b * c + a * s
        return out

    def attend(self, q, k, v):
        t = q.shape[0]
        i, j = np.arange(t)[:, None], np.arange(t)[None, :]
        hidden = j > i
        if self.window:
            hidden |= j <= i - self.window
        out = np.empty_like(q)
        weights = np.empty((t, self.heads, t))
        for h in range(self.heads):
            g = h // (self.heads // self.groups)
            s = q[:, h] @ k[:, g].T / np.sqrt(self.width)
            s[hidden] = -np.inf
            p = np.exp(s - s.max(axis=1, keepdims=True))
            weights[:, h] = p / p.sum(axis=1, keepdims=True)
            out[:, h] = weights[:, h] @ v[:, g]
        return out.reshape(t, -1), weights

    def project(self, x, name):
        y = x @ self.get(name + ".weight").T
        bias = self.get(name + ".bias")
        return y if bias is None else y + bias

    def run(self, ids):
        """Logits [T, V], and for each layer the weights of the attention [T, heads, T]."""
        every = []
        x = self.get("token_embd.weight")[np.asarray(ids)]
        t = len(ids)
        for n in range(self.layers):
            b = "blk.%d." % n
            a = self.norm(x, b + "attn_norm.weight")
            q = self.project(a, b + "attn_q").reshape(t, self.heads, self.width)
            k = self.project(a, b + "attn_k").reshape(t, self.groups, self.width)
            v = self.project(a, b + "attn_v").reshape(t, self.groups, self.width)
            o, weights = self.attend(self.rotate(q), self.rotate(k), v)
            every.append(weights)
            x = x + self.project(o, b + "attn_output")
            f = self.norm(x, b + "ffn_norm.weight")
            gate, up = self.project(f, b + "ffn_gate"), self.project(f, b + "ffn_up")
            x = x + self.project(gate / (1 + np.exp(-gate)) * up, b + "ffn_down")
        head = self.get("output.weight")
        if head is None:
            head = self.get("token_embd.weight")
        return self.norm(x, "output_norm.weight") @ head.T, every

    def logits(self, ids):
        return self.run(ids)[0]

    def shares(self, ids, ranges):
        """What each row gives to the positions [first, end) of each range: [T, L, heads, ranges]."""
        weights = np.stack(self.run(ids)[1], axis=1)
        return np.stack([weights[..., a:b].sum(axis=-1) for a, b in ranges], axis=-1)


def check(path):
    """Own dequantization against the package's, bit for bit."""
    import gguf

    m, other = Model(path), gguf.GGUFReader(path)
    for t in other.tensors:
        a = m.tensor(t.name).ravel().view(np.uint32)
        b = gguf.dequantize(t.data, t.tensor_type).astype(np.float32).ravel().view(np.uint32)
        assert a.shape == b.shape and (a == b).all(), t.name
    print("%s: %d tensors equal" % (path, len(other.tensors)))


def main(verb, *args):
    if verb == "check":
        for path in args:
            check(path)
    elif verb == "logits":
        model = Llama(args[0])
        parts = [model.logits(ids) for ids in json.load(open(args[1]))]
        np.save(args[2], np.concatenate(parts).astype(np.float32))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["help"]))
