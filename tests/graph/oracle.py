#!/usr/bin/env python3
"""Judges the graph interpreter: computes the graphs that graph_cases prints in exact arithmetic and compares every bit.

usage: oracle.py GRAPH_CASES SEED COUNT

Integers are Python's. An fp32 operation is done exactly in fractions, then rounded once. It needs nothing but Python 3.
"""
import itertools
import json
import math
import struct
import subprocess
import sys
from fractions import Fraction

LIMITS = {"Int8": 7, "Int16": 15, "Int32": 31, "Int64": 63}
# bits of the significand with the hidden one, least exponent, greatest finite value
FLOATS = {"Fp32": (24, -149, Fraction(2) ** 128), "Bf16": (8, -133, Fraction(2) ** 128), "Fp16": (11, -24, Fraction(2) ** 16)}


class Number:
    """An fp32 value: a fraction with the sign of a zero, an infinity or a NaN."""

    __slots__ = ("kind", "value", "negative")

    def __init__(self, kind, value=Fraction(0), negative=False):
        self.kind, self.value, self.negative = kind, value, negative


NAN = Number("nan")


def zero(negative):
    return Number("number", Fraction(0), negative)


def infinity(negative):
    return Number("infinity", Fraction(0), negative)


def rounded(value, negative_zero, dtype="Fp32"):
    """The nearest number of a format, ties to even; a result of 0 takes the sign given."""
    digits, least, limit = FLOATS[dtype]
    if value == 0:
        return zero(negative_zero)
    size = abs(value)
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length() - digits - 1, least)
    while size >= Fraction(2) ** (exponent + digits):
        exponent += 1
    scaled = size / Fraction(2) ** exponent
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    result = whole * Fraction(2) ** exponent
    if result >= limit:
        return infinity(value < 0)
    return Number("number", -result if value < 0 else result, value < 0)


def convert(x, dtype):
    return x if x.kind != "number" or dtype == "Fp32" else rounded(x.value, x.negative, dtype) if x.value else x


def add(a, b):
    if a.kind == "nan" or b.kind == "nan":
        return NAN
    if a.kind == "infinity" or b.kind == "infinity":
        if a.kind == b.kind and a.negative != b.negative:
            return NAN
        return a if a.kind == "infinity" else b
    return rounded(a.value + b.value, a.negative and b.negative)


def negated(a):
    return a if a.kind == "nan" else Number(a.kind, -a.value, not a.negative)


def product(a, b):
    """(exact value, sign), or an infinity or NaN."""
    if a.kind == "nan" or b.kind == "nan":
        return NAN
    negative = a.negative != b.negative
    if a.kind == "infinity" or b.kind == "infinity":
        if (a.kind == "number" and a.value == 0) or (b.kind == "number" and b.value == 0):
            return NAN
        return infinity(negative)
    return Number("number", a.value * b.value, negative)


def multiply(a, b):
    p = product(a, b)
    return p if p.kind != "number" else rounded(p.value, p.negative)


def fma(a, b, c):
    return add(product(a, b), c)


def divide(a, b):
    if a.kind == "nan" or b.kind == "nan":
        return NAN
    negative = a.negative != b.negative
    if a.kind == "infinity":
        return NAN if b.kind == "infinity" else infinity(negative)
    if b.kind == "infinity":
        return zero(negative)
    if b.value == 0:
        return NAN if a.value == 0 else infinity(negative)
    return rounded(a.value / b.value, negative)


def root(a):
    if a.kind != "number" or a.value == 0:
        return NAN if a.kind == "infinity" and a.negative else a
    if a.value < 0:
        return NAN
    shift = 2 * max(0, 200 - a.value.numerator.bit_length() + a.value.denominator.bit_length())
    scaled = (a.value.numerator << shift) // a.value.denominator
    whole = math.isqrt(scaled)
    exact = whole * whole == scaled and (a.value.numerator << shift) % a.value.denominator == 0
    # far more digits than fp32 has: a last odd digit keeps an inexact root off every tie
    return rounded(Fraction(whole * 2 + (0 if exact else 1), 2 << (shift // 2)), False)


def less(a, b):
    """a below b as maximum and minimum order them: -0 below +0."""
    x = (-2 if a.negative else 2) if a.kind == "infinity" else 0
    y = (-2 if b.negative else 2) if b.kind == "infinity" else 0
    if x != y:
        return x < y
    if a.value != b.value:
        return a.value < b.value
    return a.negative and not b.negative


def maximum(a, b):
    if a.kind == "nan" or b.kind == "nan":
        return NAN
    return b if less(a, b) else a


def minimum(a, b):
    if a.kind == "nan" or b.kind == "nan":
        return NAN
    return a if less(a, b) else b


def of_double(double):
    if double != double:
        return NAN
    if math.isinf(double):
        return infinity(double < 0)
    return rounded(Fraction(double), math.copysign(1, double) < 0)


def of_bits(bits):
    return of_double(struct.unpack("<f", struct.pack("<I", bits))[0])


def floor_of(a, shift=0):
    if a.kind != "number" or a.value == 0:
        return a
    return rounded(Fraction(math.floor(a.value / 2**shift)), a.negative)


def shifted_floor(a, by):
    """ldexp rounds where it reaches subnormals, then floor."""
    if a.kind != "number" or a.value == 0:
        return a
    return floor_of(rounded(a.value / 2**by, a.negative))


# ---- graphs ----


def elements(extents):
    return math.prod(extents)


def is_float(value):
    return value["dtype"] in FLOATS


def positions(extents):
    return itertools.product(*[range(e) for e in extents])


def offset(extents, position):
    at = 0
    for extent, x in zip(extents, position):
        at = at * extent + x
    return at


def fit(x, value):
    bits = LIMITS[value["dtype"]]
    assert -(1 << bits) <= x < 1 << bits, "does not fit"
    return x


def pack(x, value):
    return convert(x, value["dtype"]) if is_float(value) else fit(x, value)


def segment_borders(k, segments):
    units = -(-k // 32)
    borders, at = [], 0
    for s in range(segments):
        end = min(k, at + 32 * (units // segments + (s < units % segments)))
        if end > at:
            borders.append((at, end))
        at = end
    return borders


def tree(parts):
    if len(parts) == 1:
        return parts[0]
    left = 1
    while left * 2 < len(parts):
        left *= 2
    return add(tree(parts[:left]), tree(parts[left:]))


def matmul(op, a, b, data_a, data_b, out):
    k, n = a["extents"][-1], b["extents"][1]
    result = []
    borders = segment_borders(k, op["segments"])
    for row in range(elements(a["extents"][:-1])):
        for column in range(n):
            if not is_float(a):
                result.append(sum(data_a[row * k + i] * data_b[i * n + column] for i in range(k)))
                continue
            parts = []
            for begin, end in borders:
                total = zero(False)
                for i in range(begin, end):
                    total = fma(data_a[row * k + i], data_b[i * n + column], total)
                parts.append(total)
            result.append(tree(parts) if parts else zero(False))
    return result


def integer_node(node, child, operands):
    kind = node["kind"]
    if kind == "Operand":
        return operands[node["value"]]
    if kind == "Const":
        return int(struct.unpack("<d", struct.pack("<Q", node["value"]))[0])
    a = child(0)
    if kind == "Shr":
        return a >> node["value"]
    if kind == "ValueSelect":
        return child(1) if a != 0 else child(2)
    b = child(1)
    return {"Add": a + b, "Sub": a - b, "Mul": a * b, "Min": min(a, b), "Max": max(a, b)}[kind]


def float_node(node, child, operands):
    kind = node["kind"]
    if kind == "Operand":
        return operands[node["value"]]
    if kind == "Const":
        return of_double(struct.unpack("<d", struct.pack("<Q", node["value"]))[0])
    a = child(0)
    if kind == "Shr":
        return shifted_floor(a, node["value"])
    if kind == "ValueSelect":
        return child(2) if a.kind == "number" and a.value == 0 else child(1)
    if kind == "Unary":
        one = of_double(1.0)
        if node["function"] == "Recip":
            return divide(one, a)
        if node["function"] == "Relu":
            return maximum(a, zero(False))
        scaled = add(divide(a, of_double(float(node["over"]))), of_double(node["eps"] / 1e9))
        return divide(one, root(scaled))
    b = child(1)
    table = {"Add": add, "Mul": multiply, "Min": minimum, "Max": maximum, "Div": divide, "Sub": lambda x, y: add(x, negated(y))}
    return table[kind](a, b)


def pointwise(op, ins, datas, out):
    whole = not is_float(out)
    result = []
    for position in positions(out["extents"]):
        operands = []
        for value, data in zip(ins, datas):
            rank = len(value["extents"])
            own = [0 if e == 1 else x for e, x in zip(value["extents"], position[len(position) - rank :])]
            x = data[offset(value["extents"], own)]
            operands.append(x if whole or is_float(value) else rounded(Fraction(x), False))
        body = op["body"]

        def run(index):
            node = body[index]
            compute = integer_node if whole else float_node
            return compute(node, lambda c: run(node["child"][c]), operands)

        result.append(run(len(body) - 1))
    return result


def blocks(op, ins, datas, out):
    if op["kind"] == "slice":
        start, source = op["starts"][0], ins[0]["extents"]
        return [datas[0][offset(source, [s + x for s, x in zip(start, p)])] for p in positions(out["extents"])]
    result = [None] * elements(out["extents"])
    for value, data, start in zip(ins, datas, op["starts"]):
        for i, p in enumerate(positions(value["extents"])):
            result[offset(out["extents"], [s + x for s, x in zip(start, p)])] = data[i]
    return result


def run_op(op, ins, datas, out):
    kind = op["kind"]
    if kind == "matmul":
        return matmul(op, ins[0], ins[1], datas[0], datas[1], out)
    if kind == "pointwise":
        return pointwise(op, ins, datas, out)
    if kind in ("slice", "assemble"):
        return blocks(op, ins, datas, out)
    x = datas[0]
    if kind == "bias":
        plus = add if is_float(out) else lambda a, b: a + b
        columns = out["extents"][-1]
        return [plus(v, datas[1][i % columns]) for i, v in enumerate(x)]
    if kind == "relu":
        return [maximum(v, zero(False)) if is_float(out) else max(v, 0) for v in x]
    if kind == "requant":
        return [v * op["m"] >> op["s"] for v in x]
    return [min(max(v, op["low"]), op["high"]) for v in x]


def to_bits(x):
    if x.kind == "nan":
        return "nan"
    if x.kind == "infinity":
        return 0xFF800000 if x.negative else 0x7F800000
    return struct.unpack("<I", struct.pack("<f", -0.0 if x.value == 0 and x.negative else float(x.value)))[0]


def is_nan(bits):
    return bits & 0x7FFFFFFF > 0x7F800000


def judge(case):
    values, datas = case["values"], [None] * len(case["values"])
    for i, value in enumerate(values):
        if "data" in value:
            datas[i] = [of_bits(b) for b in value["data"]] if is_float(value) else value["data"]
    for op in case["ops"]:
        ins = [values[i] for i in op["ins"]]
        out = values[op["out"]]
        datas[op["out"]] = [pack(x, out) for x in run_op(op, ins, [datas[i] for i in op["ins"]], out)]
    for i, value in enumerate(values):
        found = case["results"].get(value["name"])
        if found is None:
            continue
        for at, (mine, theirs) in enumerate(zip(datas[i], found)):
            expected = to_bits(mine) if is_float(value) else mine
            if expected != theirs and not (expected == "nan" and is_nan(theirs)):
                return f"'{value['name']}' element {at}: {theirs}, expected {expected}"
        if len(found) != len(datas[i]):
            return f"'{value['name']}' has {len(found)} elements, expected {len(datas[i])}"
    return None


def main():
    program, seed, count = sys.argv[1], sys.argv[2], sys.argv[3]
    lines = subprocess.run([program, seed, count], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        case = json.loads(line)
        wrong = judge(case)
        if wrong:
            print(f"seed {case['seed']}: {wrong}\nrepeat with: {sys.argv[0]} {program} {case['seed']} 1", file=sys.stderr)
            return 1
    print(f"{len(lines)} graphs agree")
    return 0 if len(lines) == int(count) else 1


sys.exit(main())
