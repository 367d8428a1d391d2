#!/usr/bin/env python3
"""Writes the seed corpus of gguf_fuzz: small files, right and wrong.

    tests/fuzz/make_gguf_corpus.py tests/fuzz/corpus/gguf
"""
import pathlib
import struct
import sys

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f",
           BOOL: "B", U64: "Q", I64: "q", F64: "d"}


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, content):
    if kind == STRING:
        return string(content)
    if kind == ARRAY:
        entry_kind, entries = content
        head = struct.pack("<IQ", entry_kind, len(entries))
        return head + b"".join(value(entry_kind, entry) for entry in entries)
    return struct.pack("<" + FORMATS[kind], content)


def pair(key, kind, content):
    return string(key) + struct.pack("<I", kind) + value(kind, content)


def tensor(name, dims, type_id, offset):
    return (string(name) + struct.pack("<I", len(dims)) +
            struct.pack("<%dQ" % len(dims), *dims) +
            struct.pack("<IQ", type_id, offset))


def model(pairs, tensors=(), data=0, version=3, alignment=32, counts=None):
    n_tensors, n_pairs = counts or (len(tensors), len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_pairs)
    head += b"".join(pairs) + b"".join(tensors)
    if tensors:
        head += b"\0" * (-len(head) % alignment)
    return head + b"\0" * data


SCALARS = [pair("u8", U8, 1), pair("i8", I8, -1), pair("u16", U16, 1),
           pair("i16", I16, -1), pair("u32", U32, 1), pair("i32", I32, -1),
           pair("f32", F32, 0.5), pair("bool", BOOL, 1),
           pair("string", STRING, "llama"), pair("u64", U64, 2**64 - 1),
           pair("i64", I64, -2**63), pair("f64", F64, 0.1)]
ARRAYS = [pair("a%d" % kind, ARRAY, (kind, [1, 0, 1])) for kind in FORMATS]
WORDS = pair("tokens", ARRAY, (STRING, ["a", "", "\u2581the", b"\xff\xfe"]))
NESTED = pair("nested", ARRAY, (ARRAY, [(U32, [1]), (ARRAY, [(STRING, ["x"])])]))
SPLIT = [pair("split.no", U16, 1), pair("split.count", U16, 3),
         pair("split.tensors.count", I32, 9)]

CORPUS = {
    "scalars": model(SCALARS),
    "arrays": model(ARRAYS + [WORDS]),
    "empty": model([]),
    "empty-array": model([pair("none", ARRAY, (F32, []))]),
    "nested": model([NESTED]),
    "split": model(SPLIT),
    "v2": model(SCALARS[:2], [tensor("a", [4], 0, 0)], 16, version=2),
    "v1": model([], version=1),
    "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "tensors": model([WORDS], [
        tensor("token_embd.weight", [32, 2], 8, 0),
        tensor("blk.0.attn_q.weight", [256], 12, 96),
        tensor("norm", [3], 0, 256)], 268),
    "four-dims": model([], [tensor("x", [2, 3, 4, 5], 1, 0)], 240),
    "aligned": model([pair("general.alignment", U32, 64)],
                     [tensor("x", [8], 0, 64)], 96, alignment=64),
    "alignment-0": model([pair("general.alignment", U32, 0)]),
    "alignment-u64": model([pair("general.alignment", U64, 32)]),
    "trailing": model([], [tensor("x", [8], 0, 0)], 200),
    "overlap": model([], [tensor("x", [16], 0, 0), tensor("y", [8], 0, 32)], 64),
    "outside": model([], [tensor("x", [8], 0, 2**40)], 32),
    "huge-dims": model([], [tensor("x", [2**32, 2**32], 0, 0)], 32),
    "zero-dim": model([], [tensor("x", [8, 0], 0, 0)], 32),
    "removed-type": model([], [tensor("x", [32], 31, 0)], 32),
    "rows": model([], [tensor("x", [128, 4], 12, 0)], 288),
    "twice": model([pair("k", U8, 1), pair("k", U8, 1)]),
    "many-keys": model([pair("k", U8, 1)], counts=(0, 2**60)),
    "many-tensors": model([], counts=(2**63, 0)) + b"\0" * 64,
    "long-string": model([], counts=(0, 1)) + struct.pack("<Q", 2**63) + b"k",
    "glued": model([], [tensor("x", [8], 0, 0)], 32) + model([]),
    "lfs": b"version https://git-lfs.github.com/spec/v1\nsize 123\n",
    "html": b"<!DOCTYPE html><html></html>",
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in CORPUS.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
