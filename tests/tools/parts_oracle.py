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


PARTS = {
    "rmsnorm": lambda d, o: {"y": rmsnorm(d["x"], d["gain"], 1e-5)},
    "layernorm": lambda d, o: {"y": layernorm(d["x"], d["gain"], d["shift"], 1e-5)},
    "softmax": lambda d, o: {"y": softmax(d["x"])},
    "gated-mlp": lambda d, o: {"y": (silu(d["x"] @ d["w_gate"]) * (d["x"] @ d["w_up"])) @ d["w_down"]},
}


def main():
    part, inputs, result, tolerance = sys.argv[1:5]
    options = dict(item.split("=") for item in sys.argv[5:])
    expected, got = PARTS[part](read(inputs), options), read(result)
    for name, want in expected.items():
        error = np.abs(got[name] - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-30)
        print(f"{part} {name}: largest error {error:.2e} of the largest value, {tolerance} allowed")
        if not error <= float(tolerance):
            sys.exit(1)


main()
