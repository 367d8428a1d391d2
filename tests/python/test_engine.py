"""The Python module on a small model with random weights.

COLDSTREAM_TEST_MODEL names it (tests/python/CMakeLists.txt makes it).
"""

import math
import os
import threading
import time

import pytest

import coldstream
from interruption import assert_ctrl_c_ends

MODEL = os.environ["COLDSTREAM_TEST_MODEL"]
GREEDY = {"temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def engine():
    with coldstream.Engine(MODEL, ram="1G", device="cpu", context=256) as one:
        yield one


def test_every_prompt_has_its_answer_in_order(engine):
    prompts = [f"number {i}" for i in range(40)]
    together = engine.generate(prompts, max_tokens=5, **GREEDY)
    assert len(together) == 40
    for i in (0, 17, 39):
        alone, = engine.generate(prompts[i], max_tokens=5, **GREEDY)
        assert alone.text == together[i].text
        assert alone.tokens == together[i].tokens
    assert {len(result.tokens) for result in together} == {5}
    assert together[0].finish_reason == "length"


def test_token_ids_are_a_prompt(engine):
    ids = engine.tokenize("number 3")
    assert all(isinstance(token, int) for token in ids)
    assert b"".join(map(engine.token_bytes, ids)).decode().strip() == "number 3"
    one, = engine.generate(ids, max_tokens=4, **GREEDY)
    two = engine.generate([ids, ids], max_tokens=4, **GREEDY)
    assert [result.tokens for result in two] == [one.tokens] * 2


def test_pieces_make_the_whole(engine):
    whole, = engine.generate("Once", max_tokens=20, **GREEDY)
    pieces = list(engine.stream("Once", max_tokens=20, **GREEDY))
    assert "".join(pieces) == whole.text
    assert len(pieces) > 1


def test_a_stream_that_is_left_ends_its_request(engine):
    stream = engine.stream("Once", max_tokens=-1, **GREEDY)
    next(stream)
    stream.close()
    deadline = time.monotonic() + 10
    while engine.stats["running"] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert engine.stats["running"] == 0


def test_seeds_decide(engine):
    def sample(seed):
        result, = engine.generate("Once", max_tokens=12, seed=seed,
                                  temperature=1.5, ignore_eos=True)
        return result.tokens
    assert sample(1) == sample(1)
    assert sample(1) != sample(2)


def test_scores_are_log_probabilities(engine):
    scores, = engine.score("The end of it", logprobs=3)
    tokens = engine.tokenize("The end of it")
    assert [score.token for score in scores][-len(tokens) + 1:] == tokens[1:]
    for score in scores:
        assert score.logprob < 0 and len(score.best) == 3
        assert score.best[0].logprob >= score.logprob
        assert sum(math.exp(best.logprob) for best in score.best) < 1 + 1e-9


def test_answers_are_scored_where_asked(engine):
    result, = engine.generate("Once", max_tokens=3, logprobs=1, **GREEDY)
    assert [score.token for score in result.token_scores] == result.tokens
    assert result.prompt_scores == []


@pytest.mark.parametrize("options, words", [
    ({"temperature": -1}, "temperature"),
    ({"top_p": 2}, "top_p"),
    ({"max_tokens": -5}, "max_tokens"),
    ({"logprobs": 1000}, "logprobs"),
])
def test_wrong_values_are_value_errors(engine, options, words):
    with pytest.raises(coldstream.InvalidRequest, match=words) as caught:
        engine.generate("a", **options)
    assert isinstance(caught.value, ValueError)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_what_is_not_known_is_a_type_error(engine):
    with pytest.raises(TypeError, match="temprature"):
        engine.generate("a", temprature=1)
    with pytest.raises(TypeError):
        engine.generate("a", max_tokens="many")
    with pytest.raises(TypeError):
        engine.generate([3.5])


def test_a_prompt_that_is_too_long_says_both_numbers(engine):
    with pytest.raises(coldstream.InvalidRequest, match="256"):
        engine.generate("word " * 2000)


def test_no_model_and_no_memory_are_errors(tmp_path):
    with pytest.raises(coldstream.Error, match="nothing.gguf") as caught:
        coldstream.Engine(tmp_path / "nothing.gguf")
    assert caught.value.code == "NOT_FOUND"
    with pytest.raises(coldstream.Error, match="--ram") as caught:
        coldstream.Engine(MODEL, ram="1M", device="cpu")
    assert caught.value.code == "RESOURCE_EXHAUSTED"
    with pytest.raises(coldstream.InvalidRequest, match="8 gigs"):
        coldstream.Engine(MODEL, ram="8 gigs")
    with pytest.raises(coldstream.InvalidRequest, match="f16 or q8_0"):
        coldstream.Engine(MODEL, device="cpu", kv_type="q4_0")
    with pytest.raises(coldstream.InvalidRequest, match="tpu"):
        coldstream.Engine(MODEL, device="tpu")


def test_a_closed_engine_is_known_to_be():
    engine = coldstream.Engine(MODEL, ram="1G", device="cpu", context=64)
    engine.close()
    engine.close()
    with pytest.raises(coldstream.Error, match="closed"):
        engine.generate("a")


def test_closing_ends_what_another_thread_waits_for():
    engine = coldstream.Engine(MODEL, ram="1G", device="cpu", context=250)
    errors = []

    def generate():
        try:
            while True:
                engine.generate(["a", "b", "c"], max_tokens=-1, **GREEDY)
        except coldstream.Error as error:
            errors.append(error.code)

    threads = [threading.Thread(target=generate) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    engine.close()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert set(errors) <= {"CANCELLED", "FAILED_PRECONDITION"}
    assert len(errors) == 3


def test_other_threads_run_meanwhile(engine):
    counted = []
    done = threading.Event()

    def count():
        while not done.is_set():
            counted.append(1)
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    engine.generate(["Once"] * 8, max_tokens=50, **GREEDY)
    done.set()
    thread.join()
    assert len(counted) > 10


def test_ctrl_c_ends_a_waiting_call():
    assert_ctrl_c_ends("engine.generate('a', max_tokens=-1, temperature=0,\n"
                       "                ignore_eos=True)",
                       wait=30, within=5)
