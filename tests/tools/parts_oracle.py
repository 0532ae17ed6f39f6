"""Results of parts of transformers against numpy in float64: parts_oracle.py PART INPUT.h5 RESULT.h5 TOLERANCE [KEY=VALUE...]

The tolerance is relative to the largest magnitude of the expected result. Exit status 77: no numpy or h5py."""
import sys

try:
    import h5py
    import numpy as np
except ImportError:
    sys.exit(77)


def read(path):
    """Every dataset as float64, or as integers; Bf16 is stored as its 16 bits."""
    data = {}
    with h5py.File(path, "r") as file:
        for name in file:
            array = file[name][()]
            dtype = file[name].attrs.get("dtype", b"")
            if (dtype.decode() if isinstance(dtype, bytes) else str(dtype)) == "Bf16":
                array = (array.astype(np.uint32) << 16).view(np.float32)
            data[name] = array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64)
    return data


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


def rmsnorm(x, gain, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain


def layernorm(x, gain, shift, eps):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * gain + shift


def rotate(x, cos, sin):
    """Both halves of every row's last axis, turned by the row's angles."""
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def heads_of(x, heads):
    return np.split(x, heads, -1)


def attend(q, k, v, heads, keys, bounds):
    """Heads side by side; row r sees the first bounds[r] rows of k and v."""
    size = q.shape[1] // heads
    mask = np.where(np.arange(k.shape[0])[None, :] < np.asarray(bounds)[:, None], 0, -np.inf)
    ks, vs = heads_of(k, keys), heads_of(v, keys)
    mixed = [softmax(h @ ks[i * keys // heads].T / np.sqrt(size) + mask) @ vs[i * keys // heads]
             for i, h in enumerate(heads_of(q, heads))]
    return np.concatenate(mixed, -1)


def rope_heads(x, heads, cos, sin):
    return np.concatenate([rotate(h, cos, sin) for h in heads_of(x, heads)], -1)


def attention(d, o):
    heads, keys, x = int(o["heads"]), int(o["keys"]), d["x"]
    q, k = (rope_heads(x @ d[w], n, d["cos"], d["sin"]) for w, n in (("wq", heads), ("wk", keys)))
    return attend(q, k, x @ d["wv"], heads, keys, 1 + np.arange(len(x))) @ d["wo"]


def route(d):
    chosen = (d["x"] @ d["router"]).argmax(-1)
    return {"expert": chosen[:, None], "y": d["x"] * d["gain"][chosen] + d["shift"][chosen]}


def conv(d, steps):
    ring = d["ring"]
    for _ in range(steps):
        rows = np.concatenate([ring, d["x"]])
        y, ring = (rows * d["weights"]).sum(0, keepdims=True), rows[1:]
    return {"y": y, "ring": ring}


def decoder(d, o, text):
    """The whole text at once, without kept keys: what the last step leaves."""
    heads, keys, steps = int(o["heads"]), int(o["keys"]), int(o["steps"])
    # the choice of a step may be a near tie: tokens are those that were chosen, which are the largest but for rounding
    tokens = np.concatenate([d["prompt"], text[0, len(d["prompt"]) - 1:]])[:steps]
    x, cos, sin = d["tok_embed"][tokens], d["rope_cos"][:steps], d["rope_sin"][:steps]
    for layer in range(int(o["layers"])):
        w = {key.split(".", 2)[2]: value for key, value in d.items() if key.startswith(f"layers.{layer}.")}
        y = rmsnorm(x, w["attn_norm"], 1e-5)
        q, k = rope_heads(y @ w["wq"], heads, cos, sin), rope_heads(y @ w["wk"], keys, cos, sin)
        x = x + attend(q, k, y @ w["wv"], heads, keys, 1 + np.arange(steps)) @ w["wo"]
        y = rmsnorm(x, w["mlp_norm"], 1e-5)
        x = x + (silu(y @ w["w_gate"]) * (y @ w["w_up"])) @ w["w_down"]
    logits = rmsnorm(x, d["final_norm"], 1e-5) @ d["lm_head"]
    chosen = np.take_along_axis(logits, text[0, :steps, None], 1)[:, 0]
    assert (logits.max(1) - chosen <= float(o.get("slack", 1e-4)) * np.abs(logits).max()).all(), "a token is not the largest logit's"
    kept = {"pos": np.array([[steps]])} if "pos" in o["got"] else {}  # an input leaves nothing
    return {"logits": logits[-1:]} | kept


PARTS = {
    "rmsnorm": lambda d, o: {"y": rmsnorm(d["x"], d["gain"], 1e-5)},
    "layernorm": lambda d, o: {"y": layernorm(d["x"], d["gain"], d["shift"], 1e-5)},
    "softmax": lambda d, o: {"y": softmax(d["x"])},
    "gated-mlp": lambda d, o: {"y": (silu(d["x"] @ d["w_gate"]) * (d["x"] @ d["w_up"])) @ d["w_down"]},
    "rope": lambda d, o: {"y": rope_heads(d["x"], int(o["heads"]), d["cos"], d["sin"])},
    "embedding": lambda d, o: {"y": d["table"][d["ids"][:, 0]]},
    "attention": lambda d, o: {"y": attention(d, o)},
    "flash": lambda d, o: {"y": attend(d["q"], d["k"], d["v"], 1, 1, [d["pos"][0, 0] + 1] * len(d["q"]))},
    "route": lambda d, o: route(d),
    "conv": lambda d, o: conv(d, int(o["steps"])),
    "decoder": lambda d, o: decoder(d, o, o["got"]["text"]),
}


def main():
    part, inputs, result, tolerance = sys.argv[1:5]
    options = dict(item.split("=") for item in sys.argv[5:])
    got = read(result)
    expected = PARTS[part](read(inputs), options | {"got": got})
    for name, want in expected.items():
        error = np.abs(got[name] - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-30)
        print(f"{part} {name}: largest error {error:.2e} of the largest value, {tolerance} allowed")
        if not error <= float(tolerance):
            sys.exit(1)


main()
