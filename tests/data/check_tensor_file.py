"""Checks with h5py the file that test_tensor_write.c wrote: types, values, attributes, layout. Prints what is wrong."""
import sys

import h5py
import numpy

wrong = []


def check(condition, text):
    if not condition:
        wrong.append(text)


def elements(count):
    return numpy.arange(count) % 251 - 100


EXPECTED = {
    "Int8": ("<i1", elements(15).astype("<i1")),
    "Int16": ("<i2", elements(15).astype("<i2")),
    "Int32": ("<i4", elements(15).astype("<i4")),
    "Int64": ("<i8", elements(15).astype("<i8")),
    "Fp8": ("|u1", numpy.arange(15).astype("u1")),
    "Bf16": ("<u2", numpy.arange(15).astype("<u2")),
    "Fp16": ("<f2", (numpy.arange(15) / 2.0 - 3).astype("<f2")),
    "Fp32": ("<f4", (numpy.arange(15) / 2.0 - 3).astype("<f4")),
}

with h5py.File(sys.argv[1], "r") as f:
    for name, (dtype, values) in EXPECTED.items():
        dataset = f["types/" + name]
        check(dataset.dtype == numpy.dtype(dtype), "%s is stored as %s" % (name, dataset.dtype))
        check(dataset.shape == (3, 5), "%s has shape %s" % (name, dataset.shape))
        check(numpy.array_equal(dataset[...].reshape(-1), values), "%s has other values" % name)
        check(dataset.attrs["dtype"] == name.encode(), "%s has dtype %s" % (name, dataset.attrs["dtype"]))
        check(dataset.attrs["layout"] == b"RowMajor", "%s has layout %s" % (name, dataset.attrs["layout"]))
        check(dataset.attrs["role"] == b"Output", "%s has role %s" % (name, dataset.attrs["role"]))
        properties = dataset.id.get_create_plist()
        check(properties.get_layout() == h5py.h5d.CONTIGUOUS, "%s is not contiguous" % name)
        check(dataset.id.get_offset() is not None, "%s has no offset" % name)
    check(f["half"].dtype == numpy.float16, "half is %s" % f["half"].dtype)
    check(numpy.array_equal(f["half"][...].view(numpy.uint16), numpy.arange(65536, dtype=numpy.uint16)), "half differs")
    check(f["scalar"].shape == () and f["scalar"][()] == -7, "scalar differs")
    check("role" not in f["scalar"].attrs, "scalar has a role")
    check(f["empty"].shape == (0, 3), "empty has shape %s" % (f["empty"].shape,))
    check(f["eight"].shape == (1, 2, 1, 3, 1, 2, 1, 5), "eight has shape %s" % (f["eight"].shape,))
    check(numpy.array_equal(f["eight"][...].reshape(-1), numpy.arange(60, dtype="<f4")), "eight differs")
    blocks = f["blocks"][...]
    wanted = numpy.zeros((6, 7), "<f4")
    for row in range(6):
        for col in range(7):
            wanted[row, col] = 0 if row == 5 and col == 6 else row * 7 + col + 1
    check(numpy.array_equal(blocks, wanted), "blocks differ:\n%s" % blocks)
    check(numpy.array_equal(f["layers.0.wq"][...], numpy.zeros(3)), "what is not written is not zero")
    check("größe" in f, "names are not UTF-8")
    check(f.attrs["arithmetic"] == 1 and f.attrs["arithmetic"].dtype == numpy.int64, "attribute differs")

print("\n".join(wrong))
sys.exit(1 if wrong else 0)
