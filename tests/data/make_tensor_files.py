"""Writes the HDF5 files that test_tensor_file.c reads, with h5py: every type, layout and shape, and hostile ones.

Element p of a dataset in row-major order is p / 2 - 3 for floats and p mod 251 - 100 for integers, unless said otherwise.
Exit status 77: h5py is not installed.
"""
import os
import sys

try:
    import h5py
    import numpy
except ImportError as error:
    print("%s; on Debian: apt-get install python3-h5py" % error)
    sys.exit(77)


def floats(*shape):
    return (numpy.arange(numpy.prod(shape, dtype=int)) / 2.0 - 3.0).reshape(shape)


def integers(*shape):
    return (numpy.arange(numpy.prod(shape, dtype=int)) % 251 - 100).reshape(shape)


def formats(folder):
    with h5py.File(folder + "/formats.h5", "w") as f:
        for bits in (8, 16, 32, 64):
            f["int%d" % bits] = integers(7, 11).astype("<i%d" % (bits // 8))
        f["fp32"] = floats(7, 11).astype("<f4")
        f["fp16"] = numpy.arange(65536, dtype=numpy.uint16).view(numpy.float16)
        f["bf16"] = numpy.arange(65536, dtype=numpy.uint16)
        f["bf16"].attrs["dtype"] = "Bf16"
        f["fp8"] = numpy.arange(256, dtype=numpy.uint8)
        f["fp8"].attrs["dtype"] = numpy.bytes_("fp8")
        f["fp8"].attrs["role"] = numpy.bytes_("Param")
        for bits in (16, 32, 64):
            f["big/int%d" % bits] = integers(7, 11).astype(">i%d" % (bits // 8))
        f["big/fp32"] = floats(7, 11).astype(">f4")
        f["big/fp16"] = floats(7, 11).astype(">f2")
        f["big/bf16"] = numpy.arange(16, dtype=">u2")
        f["big/bf16"].attrs["dtype"] = numpy.bytes_("Bf16")
        f["scalar"] = numpy.int32(-7)
        f["one"] = numpy.full((1,), 2.5, "<f4")
        f["empty"] = numpy.zeros((0, 3), "<f4")
        f["hollow"] = numpy.zeros((3, 0), "<f4")
        f["eight"] = floats(1, 2, 1, 3, 1, 2, 1, 5).astype("<f4")
        f["layers.0.wq"] = floats(2, 2).astype("<f4")
        f["block/deep/weight"] = floats(2, 3).astype("<f4")


def layouts(folder, name, **options):
    with h5py.File(folder + "/" + name, "w", **options) as f:
        plane = floats(37, 53).astype("<f4")
        f["contiguous"] = plane
        f.create_dataset("chunked", data=plane, chunks=(8, 9))
        f.create_dataset("packed", data=plane, chunks=(10, 10), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("big", data=plane.astype(">f4"), chunks=(8, 9))
        f["wide"] = floats(5, 3000).astype("<f4")  # rows of more than a page
        box = floats(3, 4, 5, 7).astype("<f4")
        f["box"] = box
        f.create_dataset("box chunked", data=box, chunks=(2, 3, 2, 3))
        f.create_dataset("line chunked", data=floats(100).astype("<f4"), chunks=(7,))
        f.create_dataset("unwritten", (5, 6), "<f4", fillvalue=2.5)
        f.create_dataset("unwritten chunked", (5, 6), "<f4", chunks=(2, 2), fillvalue=2.5)
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((5, 6))
        dataset = h5py.h5d.create(f.id, b"compact", h5py.h5t.IEEE_F32LE, space, compact)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, floats(5, 6).astype("<f4"))


def refused(folder):
    with h5py.File(folder + "/refused.h5", "w") as f:
        f["good"] = floats(2, 2).astype("<f4")
        f["double"] = floats(2, 2)
        f["unsigned"] = numpy.arange(4, dtype=numpy.uint16)
        f["unsigned named"] = numpy.arange(4, dtype=numpy.uint32)
        f["unsigned named"].attrs["dtype"] = "Bf16"
        f["boolean"] = numpy.array([True, False])
        f["text"] = "some text"
        f["fixed text"] = numpy.bytes_("some text")
        f["complex"] = numpy.zeros(2, numpy.complex64)
        f["pairs"] = numpy.zeros(2, [("a", "<i4"), ("b", "<f4")])
        f["opaque"] = numpy.void(b"1234")
        f["nine"] = numpy.zeros((1,) * 9, "<f4")
        f["null"] = h5py.Empty("<f4")
        f["group/external"] = h5py.ExternalLink("formats.h5", "/fp32")
        f["soft"] = h5py.SoftLink("/good")
        f["loop"] = h5py.SoftLink("/loop")
        f.create_dataset("stored elsewhere", (4,), "<f4", external=[("other.raw", 0, 16)])
        layout = h5py.VirtualLayout(shape=(2, 2), dtype="<f4")
        layout[:] = h5py.VirtualSource("formats.h5", "fp32", shape=(7, 11))[:2, :2]
        f.create_virtual_dataset("virtual", layout)
        filtered = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        filtered.set_chunk((2, 2))
        filtered.set_filter(32000, h5py.h5z.FLAG_OPTIONAL)
        h5py.h5d.create(f.id, b"filtered", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((2, 2)), filtered)
        f.create_dataset("wide chunks", (1 << 14, 1 << 15), "<f4", chunks=(1 << 14, 1 << 15))
        f["named type"] = numpy.dtype("<f4")
    open(folder + "/other.raw", "wb").write(b"0123456789abcdef")
    with h5py.File(folder + "/sparse.h5", "w") as f:
        f.create_dataset("vast", (1 << 20, 1 << 20), "<f4", chunks=(64, 64))
    with h5py.File(folder + "/unallocated.h5", "w") as f:
        f.create_dataset("vast", (1 << 20, 1 << 20), "<f4")


def groups(folder):
    with h5py.File(folder + "/circle.h5", "w") as f:
        f["a/b/x"] = numpy.zeros(2, "<f4")
        f["a/b/again"] = f["a"]
    with h5py.File(folder + "/deep.h5", "w") as f:
        f["/".join(["g"] * 3000) + "/x"] = numpy.zeros(2, "<f4")
    with h5py.File(folder + "/shared.h5", "w") as f:
        f["a/x"] = floats(2).astype("<f4")
        f["b"] = f["a"]
        f["y"] = f["a/x"]
    with h5py.File(folder + "/doubling.h5", "w") as f:
        group = f
        for i in range(40):  # each group is held twice by the one before: 2^40 names
            following = group.create_group("l")
            group["r"] = following
            group = following


def plain(folder):
    """Small, so that damage mostly meets what describes the data."""
    with h5py.File(folder + "/plain.h5", "w") as f:
        f["a/w"] = floats(4, 5).astype("<f4")
        f["b"] = numpy.arange(6, dtype="<u2")
        f["b"].attrs["dtype"] = numpy.bytes_("Bf16")
        f["b"].attrs["role"] = numpy.bytes_("Param")
        f.create_dataset("c", data=integers(10, 10).astype("<i4"), chunks=(3, 3))
        f["s"] = numpy.int8(3)


def broken(folder):
    whole = open(folder + "/formats.h5", "rb").read()
    open(folder + "/truncated.h5", "wb").write(whole[: len(whole) // 2])
    open(folder + "/short.h5", "wb").write(whole[:100])
    open(folder + "/no.h5", "wb").write(b"this is text, not tensors\n")
    open(folder + "/empty.h5", "wb").write(b"")


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    formats(folder)
    layouts(folder, "layouts.h5")
    layouts(folder, "layouts-latest.h5", libver="latest")
    layouts(folder, "layouts-userblock.h5", userblock_size=512)
    refused(folder)
    groups(folder)
    plain(folder)
    broken(folder)


main()
