"""Engine.embed on a small model with random weights.

COLDSTREAM_TEST_MODEL names it, COLDSTREAM_TEST_COMMAND the coldstream command
of the same build.
"""

import array
import importlib.util
import json
import math
import os
import subprocess
import sys
import threading
import time

import pytest

import coldstream
from interruption import assert_ctrl_c_ends

MODEL = os.environ["COLDSTREAM_TEST_MODEL"]
COMMAND = os.environ["COLDSTREAM_TEST_COMMAND"]
HIDDEN = 256
TEXTS = ["a", "number 3", "The end of it", "wörds – ☃", "again " * 30]
POOLINGS = ["mean", "last", "cls"]

needs_numpy = pytest.mark.skipif(importlib.util.find_spec("numpy") is None,
                                 reason="there is no numpy")


@pytest.fixture(scope="module")
def engine():
    with coldstream.Engine(MODEL, ram="1G", device="cpu", context=256) as one:
        yield one


@pytest.fixture
def no_numpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)


def lists(vectors):
    """Exact: a double holds every float."""
    return vectors if isinstance(vectors, list) else vectors.tolist()


def as_float(value):
    """The nearest float to a double, as C rounds it."""
    return array.array("f", [value])[0]


def batch_vectors(folder, inputs, pooling):
    """What `coldstream batch` writes for them."""
    folder.mkdir()
    source, target = folder / "in.jsonl", folder / "out.jsonl"
    body = {"model": "m", "input": inputs, "pooling": pooling}
    source.write_text(json.dumps({"custom_id": "1", "method": "POST",
                                  "url": "/v1/embeddings", "body": body}))
    subprocess.run([COMMAND, "batch", "-m", MODEL, "--ram", "1G", "--device",
                    "cpu", "-c", "256", "-i", str(source), "-o", str(target)],
                   check=True, capture_output=True)
    data = json.loads(target.read_text())["response"]["body"]["data"]
    assert [entry["index"] for entry in data] == list(range(len(inputs)))
    return [[as_float(value) for value in entry["embedding"]]
            for entry in data]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_vectors_have_the_bits_of_the_command(engine, tmp_path, pooling):
    expected = batch_vectors(tmp_path / "texts", TEXTS, pooling)
    assert lists(engine.embed(TEXTS, pooling=pooling)) == expected
    assert lists(engine.embed(TEXTS[2], pooling=pooling)) == expected[2]
    ids = [engine.tokenize(text) for text in TEXTS]
    by_ids = batch_vectors(tmp_path / "ids", ids, pooling)
    assert lists(engine.embed(ids, pooling=pooling)) == by_ids


# Sums in double, in the order of the tokens, rounded once: runtime/pooling.h.
def test_the_mean_is_that_of_what_every_token_ends_with(engine):
    ids = engine.tokenize("The quick brown fox jumps over the lazy dog")
    last = lists(engine.embed([ids[:n + 1] for n in range(len(ids))],
                              pooling="last", normalize=False))
    assert len(last) > 5
    sums = [0.0] * HIDDEN
    for row in last:
        sums = [one + two for one, two in zip(sums, row)]
    mean = [as_float(value / len(ids)) for value in sums]
    assert lists(engine.embed(ids, pooling="mean", normalize=False)) == mean
    first = lists(engine.embed(ids, pooling="cls", normalize=False))
    assert first == last[0]


@pytest.mark.parametrize("pooling", ["last", "cls"])
def test_a_normalized_vector_is_the_other_by_its_length(engine, pooling):
    plain = lists(engine.embed(TEXTS[2], pooling=pooling, normalize=False))
    squares = 0.0
    for value in plain:
        squares += value * value
    expected = [as_float(value / math.sqrt(squares)) for value in plain]
    assert lists(engine.embed(TEXTS[2], pooling=pooling)) == expected
    assert plain != expected


def test_without_a_pooling_it_is_the_models(engine):
    assert lists(engine.embed("a b")) == lists(
        engine.embed("a b", pooling="mean"))


def test_one_text_is_one_vector_and_a_list_one_a_text(engine, no_numpy):
    vector = engine.embed("number 3")
    assert len(vector) == HIDDEN == engine.embedding_size
    assert all(type(value) is float for value in vector)
    assert engine.embed(["number 3"]) == [vector]
    assert engine.embed(text for text in ["number 3", "a"])[0] == vector
    ids = engine.tokenize("number 3")
    assert len(engine.embed(ids)) == HIDDEN
    assert engine.embed([ids, ids]) == [engine.embed(ids)] * 2
    assert engine.embed([]) == []


@needs_numpy
def test_with_numpy_they_are_arrays_of_the_same_numbers(engine, monkeypatch):
    import numpy
    vectors = engine.embed(TEXTS)
    assert vectors.dtype == numpy.float32
    assert vectors.shape == (len(TEXTS), HIDDEN)
    assert vectors.flags.writeable and vectors.flags.c_contiguous
    assert engine.embed(TEXTS[0]).shape == (HIDDEN,)
    assert engine.embed([]).shape == (0, HIDDEN)
    ids = numpy.array([engine.tokenize("number 3")] * 2)
    assert engine.embed(ids).shape == (2, HIDDEN)
    assert engine.embed(ids[0]).shape == (HIDDEN,)
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert engine.embed(TEXTS) == vectors.tolist()


def test_many_texts_keep_their_order(engine):
    texts = [f"number {i % 7}" for i in range(200)]
    vectors = lists(engine.embed(texts))
    for i, text in enumerate(texts[:7]):
        alone = lists(engine.embed(text))
        assert all(vector == alone for vector in vectors[i::7])
    assert len({tuple(vector) for vector in vectors}) == 7


def test_control_tokens_count_where_asked(engine):
    name = "<|end_of_text|>"
    token, = engine.tokenize(name, parse_special=True)
    parsed = lists(engine.embed(name, parse_special=True, pooling="last"))
    start, = engine.tokenize("<|begin_of_text|>", parse_special=True)
    assert parsed in (lists(engine.embed([token], pooling="last")),
                      lists(engine.embed([start, token], pooling="last")))
    assert parsed != lists(engine.embed(name, pooling="last"))


@pytest.mark.parametrize("texts, options, words", [
    ("a", {"pooling": "max"}, "pooling.*max"),
    ([], {"pooling": "max"}, "pooling.*max"),
    (["a", "word " * 2000], {}, r"texts\[1\].*256"),
    (["a", [1, -5]], {}, r"texts\[1\].*-5"),
    ([1, 1 << 20], {}, "1048576"),
    ([1, 1 << 40], {}, "1099511627776"),
    (["a", []], {}, r"texts\[1\].*empty"),
    (["a", "\ud800"], {}, r"texts\[1\].*surrogate"),
])
def test_wrong_values_are_value_errors(engine, texts, options, words):
    with pytest.raises(coldstream.InvalidRequest, match=words) as caught:
        engine.embed(texts, **options)
    assert isinstance(caught.value, ValueError)
    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("texts, options", [
    (None, {}),
    (5, {}),
    (b"abc", {}),
    ({"input_ids": [1, 2]}, {}),
    ([b"abc"], {}),
    (["a", None], {}),
    ([["a"]], {}),
    ([1, 2.5], {}),
    ("a", {"pooling": 3}),
    ("a", {"max_tokens": 3}),
])
def test_what_is_no_text_is_a_type_error(engine, texts, options):
    with pytest.raises(TypeError):
        engine.embed(texts, **options)


def test_an_error_leaves_nothing_behind(engine):
    with pytest.raises(coldstream.InvalidRequest):
        engine.embed(["a"] * 50 + ["word " * 2000])
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not engine.stats["running"] + engine.stats["waiting"]:
            break
        time.sleep(0.01)
    assert engine.stats["running"] == engine.stats["waiting"] == 0
    assert len(engine.embed("a")) == HIDDEN


def test_a_closed_engine_embeds_nothing():
    engine = coldstream.Engine(MODEL, ram="1G", device="cpu", context=64)
    engine.close()
    with pytest.raises(coldstream.Error, match="closed"):
        engine.embed("a")


def test_other_threads_embed_and_run_meanwhile(engine):
    expected = lists(engine.embed(TEXTS))
    counted, found = [], []
    done = threading.Event()

    def count():
        while not done.is_set():
            counted.append(1)
            time.sleep(0.001)

    def embed():
        for _ in range(5):
            found.append(lists(engine.embed(TEXTS)))

    threads = [threading.Thread(target=embed) for _ in range(4)]
    counter = threading.Thread(target=count)
    counter.start()
    for thread in threads:
        thread.start()
    engine.embed(["word " * 60] * 40)
    for thread in threads:
        thread.join()
    done.set()
    counter.join()
    assert len(counted) > 10
    assert found == [expected] * 20


def test_ctrl_c_ends_a_waiting_call():
    assert_ctrl_c_ends("engine.embed(texts)", wait=60, within=15, setup=(
        "texts = [[i % 500] * 15000 for i in range(100)]"))
