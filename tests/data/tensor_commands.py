"""weft tensor and weft diff, run as a user runs them, with h5py and numpy as the truth.

    tensor_commands.py WEFT WORK-FOLDER

Exit status 77: h5py is not installed.
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

try:
    import h5py
    import numpy
except ImportError as error:
    print("%s; on Debian: apt-get install python3-h5py" % error)
    sys.exit(77)

WEFT = os.path.abspath(sys.argv[1])
WORK = sys.argv[2]


def weft(*arguments, code=0):
    """Runs weft; its standard output and standard error."""
    done = subprocess.run([WEFT, *arguments], cwd=WORK, capture_output=True, text=True, timeout=120)
    if done.returncode != code:
        raise AssertionError("weft %s: status %d\n%s%s" % (" ".join(arguments), done.returncode, done.stdout, done.stderr))
    return done.stdout, done.stderr


def write(name, **datasets):
    with h5py.File(os.path.join(WORK, name), "w") as f:
        for key, value in datasets.items():
            f[key] = value


def read(name):
    with h5py.File(os.path.join(WORK, name), "r") as f:
        result = {}
        f.visititems(lambda key, item: result.update({key: item[...]}) if isinstance(item, h5py.Dataset) else None)
        return result


def contents(name):
    with open(os.path.join(WORK, name), "rb") as f:
        return f.read()


class Show(unittest.TestCase):
    def test_lists_types_shapes_and_roles(self):
        write("show.h5", x=numpy.array([[1, numpy.nan, -2]], "<f4"), n=numpy.int32(5), d=numpy.zeros(2))
        out, _ = weft("tensor", "show", "show.h5", "--statistics")
        lines = [line.split() for line in out.splitlines()]
        self.assertEqual(lines[0], "d not readable: it holds 64-bit floats".split())
        self.assertEqual(lines[1], "n Int32 [] least 5 greatest 5 mean 5".split())
        self.assertEqual(lines[2], "x Fp32 [1, 3] least -2 greatest 1 mean -0.5 1 NaN".split())

    def test_json(self):
        write("show.h5", **{"a\"b": numpy.zeros((2, 3), "<f2"), "b": numpy.array(["x"], dtype="S1")})
        listed = json.loads(weft("tensor", "show", "show.h5", "--json")[0])
        self.assertEqual(listed[0], {"name": "a\"b", "dtype": "Fp16", "shape": [2, 3], "role": ""})
        self.assertEqual(listed[1], {"name": "b", "unreadable": "holds text"})

    def test_names_cannot_command_the_terminal(self):
        write("show.h5", x=numpy.zeros(1, "<f4"))
        _, error = weft("tensor", "slice", "show.h5", "y\x1b[2J", ":", "-o", "o.h5", code=1)
        self.assertNotIn("\x1b", error)
        self.assertIn("\\x1b", error)


class Slice(unittest.TestCase):
    def setUp(self):
        self.data = {
            "x": numpy.arange(70, dtype="<f4").reshape(10, 7),
            "line": numpy.arange(10, dtype="<i4"),
            "box": numpy.arange(240, dtype="<i2").reshape(10, 3, 2, 4),
            "scalar": numpy.int8(4),
        }
        write("whole.h5", **self.data)

    def test_rows_of_every_rank(self):
        weft("tensor", "slice", "whole.h5", "x", "2:5", "line", ":3", "box", "7:", "-o", "part.h5")
        part = read("part.h5")
        self.assertEqual(sorted(part), ["box", "line", "x"])
        self.assertTrue(numpy.array_equal(part["x"], self.data["x"][2:5]))
        self.assertTrue(numpy.array_equal(part["line"], self.data["line"][:3]))
        self.assertTrue(numpy.array_equal(part["box"], self.data["box"][7:]))
        self.assertEqual(part["box"].dtype, numpy.dtype("<i2"))

    def test_keep_copies_the_others(self):
        weft("tensor", "slice", "whole.h5", "x", "0:0", "--keep", "-o", "part.h5")
        part = read("part.h5")
        self.assertEqual(part["x"].shape, (0, 7))
        for name in ("line", "box", "scalar"):
            self.assertTrue(numpy.array_equal(part[name], self.data[name]))

    def test_in_place(self):
        weft("tensor", "slice", "whole.h5", "x", "1:2", "-o", "whole.h5")
        self.assertTrue(numpy.array_equal(read("whole.h5")["x"], self.data["x"][1:2]))

    def test_more_than_one_piece(self):
        long = numpy.arange(9000000, dtype="<i4")
        write("long.h5", long=long, wide=long.reshape(2, 4500000), tall=long.reshape(3000000, 3))
        weft("tensor", "slice", "long.h5", "long", "5:8999990", "wide", "1:2", "tall", "1:2999999", "-o", "part.h5")
        part = read("part.h5")
        self.assertTrue(numpy.array_equal(part["long"], long[5:8999990]))
        self.assertTrue(numpy.array_equal(part["wide"], long.reshape(2, 4500000)[1:2]))
        self.assertTrue(numpy.array_equal(part["tall"], long.reshape(3000000, 3)[1:2999999]))

    def test_mistakes_name_file_and_tensor(self):
        for words, expected in (
            (("x", "0:11"), "tensor `x`: `0:11` is no range of its 10 rows"),
            (("x", "5:4"), "no range"),
            (("x", "a:4"), "no range"),
            (("x", "3"), "no range"),
            (("x", "99999999999999999999999:"), "no range"),
            (("y", "0:1"), "tensor `y`: the file has no such dataset"),
            (("scalar", "0:1"), "a scalar has no rows"),
            (("x", ":", "x", ":"), "twice"),
        ):
            if os.path.exists(WORK + "/out.h5"):
                os.remove(WORK + "/out.h5")
            _, error = weft("tensor", "slice", "whole.h5", *words, "-o", "out.h5", code=1)
            self.assertIn(expected, error)
            self.assertIn(".h5", error)
            self.assertFalse(os.path.exists(WORK + "/out.h5"))
        weft("tensor", "slice", "whole.h5", "x", "0:1", "line", "-o", "out.h5", code=2)
        weft("tensor", "slice", "whole.h5", "x", "0:1", code=2)


class Rename(unittest.TestCase):
    def test_other_names_same_data(self):
        write("in.h5", x_test=numpy.arange(6, dtype="<f4"), w=numpy.zeros((2, 2), "<f2"))
        weft("tensor", "rename", "in.h5", "x_test=x", "-o", "out.h5")
        out = read("out.h5")
        self.assertEqual(sorted(out), ["w", "x"])
        self.assertTrue(numpy.array_equal(out["x"], numpy.arange(6)))
        weft("tensor", "rename", "in.h5", "x_test=block/x", "--only", "-o", "out.h5")
        self.assertEqual(sorted(read("out.h5")), ["block/x"])

    def test_names_can_be_swapped(self):
        write("in.h5", a=numpy.float32(1), b=numpy.float32(2))
        weft("tensor", "rename", "in.h5", "a=b", "b=a", "-o", "out.h5")
        self.assertEqual((read("out.h5")["a"], read("out.h5")["b"]), (2, 1))

    def test_mistakes(self):
        write("in.h5", a=numpy.float32(1), b=numpy.float32(2))
        self.assertIn("twice", weft("tensor", "rename", "in.h5", "a=b", "-o", "out.h5", code=1)[1])
        self.assertIn("tensor `c`", weft("tensor", "rename", "in.h5", "c=d", "-o", "out.h5", code=1)[1])
        weft("tensor", "rename", "in.h5", "a", "-o", "out.h5", code=2)
        weft("tensor", "rename", "in.h5", "a=", "-o", "out.h5", code=2)


class Accuracy(unittest.TestCase):
    def test_first_of_the_largest(self):
        logits = numpy.array([[0, 1, 1], [5, 2, 3], [numpy.nan, 9, 1], [1, numpy.nan, 2], [-3, -2, -1]], "<f4")
        write("a.h5", y=logits, labels=numpy.array([1, 0, 0, 2, 0], "<i4"), short=numpy.array([1], "<i4"))
        self.assertEqual(weft("tensor", "accuracy", "--logits", "a.h5:y", "--labels", "a.h5:labels")[0], "4/5\n")
        _, error = weft("tensor", "accuracy", "--logits", "a.h5:y", "--labels", "a.h5:short", code=1)
        self.assertIn("tensor `y` has 5 rows and tensor `short` 1 labels", error)
        weft("tensor", "accuracy", "--logits", "a.h5:y", code=2)
        weft("tensor", "accuracy", "--logits", "a.h5", "--labels", "a.h5:labels", code=2)
        weft("tensor", "accuracy", "--logits", "a.h5:y", "--labels", "a.h5:y", code=1)


class Diff(unittest.TestCase):
    def setUp(self):
        self.a = numpy.array([[1, 2, 3], [4, 5, 6]], "<f4")
        self.b = self.a.copy()
        self.b[1, 2] = numpy.nextafter(numpy.float32(6), numpy.float32(7))
        write("a.h5", x=self.a, n=numpy.arange(3, dtype="<i4"))
        write("b.h5", x=self.b, n=numpy.arange(3, dtype="<i4"))

    def test_equal_files(self):
        out, _ = weft("diff", "a.h5", "a.h5")
        self.assertEqual(out, "n: equal, 3 Int32\nx: equal, 6 Fp32\n")

    def test_limits(self):
        out, _ = weft("diff", "a.h5", "b.h5", code=1)
        self.assertIn("x: DIFFERS, 1 of 6 Fp32 differ, first at [1, 2] (6 and 6.00000048)", out)
        self.assertIn("1 ulp", out)
        weft("diff", "a.h5", "b.h5", "--max-ulp", "0", code=1)
        self.assertIn("within limits", weft("diff", "a.h5", "b.h5", "--max-ulp", "1")[0])
        weft("diff", "a.h5", "b.h5", "--max-abs", "5e-7")
        weft("diff", "a.h5", "b.h5", "--max-abs", "4e-7", code=1)
        weft("diff", "a.h5", "b.h5", "--max-rel", "8e-8")
        weft("diff", "a.h5", "b.h5", "--max-rel", "7e-8", code=1)
        weft("diff", "a.h5", "b.h5", "--max-ulp", "1", "--max-abs", "4e-7", code=1)

    def test_json(self):
        result = json.loads(weft("diff", "a.h5", "b.h5", "--json", code=1)[0])
        self.assertFalse(result["within"])
        n, x = result["tensors"]
        self.assertEqual((n["a"], n["differing"], n["within"]), ("n", 0, True))
        self.assertEqual((x["differing"], x["first_index"], x["max_ulp"], x["within"]), (1, 5, 1, False))
        self.assertEqual(x["max_abs"], float(self.b[1, 2]) - 6)
        self.assertEqual(x["max_rel"], (float(self.b[1, 2]) - 6) / float(self.b[1, 2]))
        write("nan.h5", x=numpy.full((2, 3), numpy.nan, "<f4"))
        result = json.loads(weft("diff", "a.h5", "nan.h5", "-t", "x", "--json", code=1)[0])
        self.assertEqual((result["tensors"][0]["max_ulp"], result["tensors"][0]["max_abs"]), (2**64 - 1, None))
        write("none.h5")
        self.assertEqual(json.loads(weft("diff", "none.h5", "none.h5", "--json")[0]), {"tensors": [], "within": True})

    def test_measures_agree_with_numpy(self):
        random = numpy.random.default_rng(1)
        a, b = (random.standard_normal((50, 40)).astype("<f4") for _ in range(2))
        write("p.h5", x=a)
        write("q.h5", x=b)
        x = json.loads(weft("diff", "p.h5", "q.h5", "--json", code=1)[0])["tensors"][0]
        difference = numpy.abs(a.astype("f8") - b.astype("f8"))
        self.assertEqual(x["max_abs"], difference.max())
        self.assertEqual(x["max_rel"], difference.max() / numpy.abs(b.astype("f8")).max())
        self.assertEqual(x["differing"], int((a != b).sum()))

        def place(v):
            bits = v.view("<i4").astype("i8")
            return numpy.where(bits < 0, -1 - (bits & 0x7FFFFFFF), bits)

        self.assertEqual(x["max_ulp"], int(numpy.abs(place(a) - place(b)).max()))

    def test_missing_and_unlike(self):
        write("c.h5", x=self.a.reshape(3, 2), only=numpy.float32(1))
        out, _ = weft("diff", "a.h5", "c.h5", code=1)
        self.assertIn("n: DIFFERS, it is missing in c.h5", out)
        self.assertIn("only: DIFFERS, it is missing in a.h5", out)
        self.assertIn("x: DIFFERS, it is Fp32 [2, 3] against Fp32 [3, 2]", out)
        write("d.h5", x=self.a.astype("<f8"))
        self.assertIn("in d.h5 it holds 64-bit floats", weft("diff", "a.h5", "d.h5", "-t", "x", code=1)[0])

    def test_chosen_tensors(self):
        write("e.h5", y=self.a, z=numpy.arange(3, dtype="<i4"))
        out, _ = weft("diff", "a.h5", "e.h5", "--tensors", "x=y,n=z")
        self.assertEqual(out, "x = y: equal, 6 Fp32\nn = z: equal, 3 Int32\n")
        weft("diff", "a.h5", "e.h5", "--tensors", "x=y", "--tensors", "n=z")
        weft("diff", "a.h5", "e.h5", "--tensors", "x=y,", code=2)
        weft("diff", "a.h5", "e.h5", "--tensors", "x", code=1)

    def test_files_are_named(self):
        self.assertIn("absent.h5", weft("diff", "a.h5", "absent.h5", code=1)[1])
        weft("diff", "a.h5", code=2)
        weft("diff", "a.h5", "b.h5", "--max-ulp", "-1", code=2)
        self.assertIn("did you mean --max-ulp", weft("diff", "a.h5", "b.h5", "--max-ulps", "1", code=2)[1])

    def test_full_standard_output(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("this system has no /dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run([WEFT, "diff", "a.h5", "a.h5"], cwd=WORK, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot write standard output", done.stderr)


class Make(unittest.TestCase):
    def setUp(self):
        weft("new", "mlp", "--layers", "33,65,7", "--batch", "5", "--bias", "--relu", "-o", "mlp.json")

    def test_every_dataset_that_is_read(self):
        weft("tensor", "make", "--program", "mlp.json", "--seed", "1", "-o", "in.h5")
        made = read("in.h5")
        shapes = {"x": (5, 33), "w1": (33, 65), "b1": (65,), "w2": (65, 7), "b2": (7,)}
        self.assertEqual({name: value.shape for name, value in made.items()}, shapes)
        everything = numpy.concatenate([value.reshape(-1) for value in made.values()])
        self.assertEqual(everything.dtype, numpy.float32)
        self.assertTrue((everything >= -1).all() and (everything < 1).all())
        self.assertLess(abs(everything.mean()), 0.05)
        self.assertAlmostEqual(everything.std(), 1 / 3**0.5, delta=0.02)
        self.assertEqual(len(numpy.unique(everything)), len(everything))
        with h5py.File(WORK + "/in.h5", "r") as f:
            self.assertEqual((f["x"].attrs["role"], f["w1"].attrs["role"]), (b"Input", b"Param"))

    def test_the_seed_decides(self):
        for name, seed in (("one.h5", "1"), ("again.h5", "1"), ("two.h5", "2")):
            weft("tensor", "make", "--program", "mlp.json", "--seed", seed, "-o", name)
        self.assertEqual(contents("one.h5"), contents("again.h5"))
        self.assertFalse((read("one.h5")["x"] == read("two.h5")["x"]).any())

    def test_sharding_does_not_change_the_file(self):
        weft("tensor", "make", "--program", "mlp.json", "--seed", "1", "-o", "whole.h5")
        for split in ("columns", "rows", "batch"):
            weft("shard", "mlp.json", "--chips", "3", "--split", split, "-o", "sharded.json")
            weft("tensor", "make", "--program", "sharded.json", "--seed", "1", "-o", "sharded.h5")
            weft("diff", "whole.h5", "sharded.h5")

    def test_declared_ranges(self):
        weft("new", "mlp", "--layers", "16,8", "--batch", "64", "--dtype", "int8", "-o", "int8.json")
        with open(WORK + "/int8.json") as f:
            program = json.load(f)
        for tensor in program["tensors"]:
            if tensor["name"] == "x":
                tensor["range"] = [-3, 5]
        with open(WORK + "/int8.json", "w") as f:
            json.dump(program, f)
        weft("tensor", "make", "--program", "int8.json", "--seed", "1", "-o", "in.h5")
        x = read("in.h5")["x"]
        self.assertEqual(x.dtype, numpy.int8)
        self.assertEqual(sorted(set(x.reshape(-1).tolist())), list(range(-3, 6)))

    def test_declared_fills(self):
        with open(WORK + "/mlp.json") as f:
            program = json.load(f)
        bits = int(numpy.array([1.1], "<f8").view("<u8")[0])
        fills = {
            "x": {"Pattern": {"modulus": 7, "shift": -3}},
            "w1": {"ConstF": bits},
            "b1": "Zero",
            "w2": {"RandomBf16": {"seed": 5, "shift_milli": 0}},
            "b2": {"Values": [1, 2, 3, 4, 5, 6, -7]},
        }
        for tensor in program["tensors"]:
            if tensor["name"] in fills:
                tensor["init"] = fills[tensor["name"]]
        with open(WORK + "/filled.json", "w") as f:
            json.dump(program, f)
        weft("tensor", "make", "--program", "filled.json", "--seed", "1", "-o", "in.h5")
        made = read("in.h5")
        self.assertTrue(numpy.array_equal(made["x"].reshape(-1), numpy.arange(165) % 7 - 3))
        self.assertTrue((made["w1"] == numpy.float32(1.1)).all())
        self.assertTrue((made["b1"] == 0).all())
        self.assertTrue(numpy.array_equal(made["b2"], [1, 2, 3, 4, 5, 6, -7]))
        self.assertTrue(((made["w2"].view("<u4") & 0xFFFF) == 0).all() and made["w2"].std() > 0.5)

    def test_mistakes(self):
        weft("tensor", "make", "--program", "mlp.json", code=2)
        weft("tensor", "make", "-o", "in.h5", code=2)
        weft("tensor", "make", "--program", "absent.json", "-o", "in.h5", code=1)
        self.assertIn("absent/in.h5", weft("tensor", "make", "--program", "mlp.json", "-o", "absent/in.h5", code=1)[1])


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(WORK)
unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
