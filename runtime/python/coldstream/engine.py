"""The engine: many prompts, one sweep of the weights for each token of all."""

from __future__ import annotations

import operator
import os
import re
import time
import warnings
from collections import deque
from contextlib import closing
from dataclasses import dataclass
from typing import (TYPE_CHECKING, Any, Dict, Generator, Iterable, Iterator,
                    List, Literal, Mapping, Optional, Sequence, Tuple, Union)

from coldstream import _engine, vectors

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

Prompt = Union[str, Sequence[int]]
Size = Union[int, str]
Stats = Dict[str, Any]

# How long Python does not look at signals.
_GLANCE_SECONDS = 0.05
_MOST_TOKEN = (1 << 31) - 1
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Error(Exception):
    """What went wrong, in one line; `code` is "NOT_FOUND" and the like."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class InvalidRequest(Error, ValueError):
    """A value that cannot be used; code INVALID_ARGUMENT."""


@dataclass(frozen=True)
class TokenScore:
    """A token, its log-probability, and the best ones in its place."""

    token: int
    logprob: float
    best: List["TokenScore"]


@dataclass(frozen=True)
class Result:
    """What came of one prompt.

    finish_reason is "stop" or "length". prompt_scores are of the prompt's
    second token and all behind it, token_scores of those in `tokens`; both are
    empty unless asked for. reused_tokens of the prompt were there already.
    """

    text: str
    tokens: List[int]
    finish_reason: str
    prompt_tokens: int
    reused_tokens: int
    prompt_scores: List[TokenScore]
    token_scores: List[TokenScore]
    seconds: float


def _error(code: str, message: str) -> Error:
    kind = InvalidRequest if code == "INVALID_ARGUMENT" else Error
    return kind(code, message)


def _size(value: Size, name: str) -> int:
    """Bytes of 8_000_000_000, "8G" or "512M"."""
    if isinstance(value, int):
        return value
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*",
                         value, re.IGNORECASE)
    if match is None:
        raise InvalidRequest(
            "INVALID_ARGUMENT",
            f"{name}: expected a size like 8G or 512M, got {value!r}")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _scores(rows: List[List[tuple]]) -> List[TokenScore]:
    return [
        TokenScore(row[0][0], row[0][1],
                   [TokenScore(token, logprob, [])
                    for token, logprob in row[1:]])
        for row in rows
    ]


def _is_token(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _token_ids(prompt: Sequence[int], name: str) -> List[int]:
    if isinstance(prompt, (bytes, bytearray)):
        raise TypeError(f"{name}: expected a text or token ids, got bytes")
    try:
        ids = [operator.index(token) for token in prompt]
    except TypeError:
        raise TypeError(f"{name}: expected a text or token ids, got "
                        f"{prompt!r:.80}") from None
    for token in ids:
        if abs(token) > _MOST_TOKEN:
            raise InvalidRequest("INVALID_ARGUMENT",
                                 f"{name}: there is no token id {token}")
    return ids


def _text_ids(engine: "_engine.Engine", text: str, parse_special: bool,
              name: str) -> List[int]:
    try:
        return engine.prompt_ids(text, parse_special)
    except TypeError:
        _utf8(text, name)  # if that is why
        raise


def _utf8(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest("INVALID_ARGUMENT", f"{name}: {error}") from None


def _fields(pending: "_engine.Pending") -> Dict[str, Any]:
    """Of one that has ended well."""
    fields = pending.result()
    code, message = fields.pop("code"), fields.pop("message")
    if code != "OK":
        raise _error(code, message)
    return fields


def _result(fields: Dict[str, Any]) -> Result:
    del fields["embedding"]
    fields["prompt_scores"] = _scores(fields["prompt_scores"])
    fields["token_scores"] = _scores(fields["token_scores"])
    return Result(**fields)


class Engine:
    """One model, one memory budget.

    path: a GGUF file, any part of a split one, or its folder.
    ram, vram: caps, in bytes or as "8G"; None: what is free.
    device: "auto", "cpu" or "cuda".
    context: most tokens of a prompt and its answer; 0: the engine's choice.
    max_sequences: prompts worked on at once; queue_length: those that wait.
    kv_type: how keys and values of past tokens are stored; "q8_0" takes 53 %
    of the memory and changes results a little.

    Methods may be called from several threads. Ctrl-C ends a waiting call
    within a fraction of a second and cancels what it had asked for.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], *,
                 ram: Optional[Size] = None, vram: Optional[Size] = None,
                 device: str = "auto", threads: int = 0,
                 prefetch_depth: int = 0, context: int = 0,
                 batch_tokens: int = 512, max_sequences: int = 8,
                 queue_length: int = 64,
                 kv_type: Literal["f16", "q8_0"] = "f16") -> None:
        options = _engine.Options()
        options.path = os.fspath(path)
        options.device = device
        options.ram_bytes = 0 if ram is None else _size(ram, "ram")
        options.vram_bytes = 0 if vram is None else _size(vram, "vram")
        options.threads = threads
        options.prefetch_depth = prefetch_depth
        options.context = context
        options.batch_tokens = batch_tokens
        options.max_sequences = max_sequences
        options.queue_length = queue_length
        options.kv_type = kv_type
        self._engine: Optional[_engine.Engine] = None
        try:
            self._engine = _engine.Engine(options)
        except _engine.EngineError as error:
            raise _error(*error.args) from None
        for line in self._engine.warnings:
            warnings.warn(line, RuntimeWarning, stacklevel=2)

    def generate(self, prompts: Union[Prompt, Iterable[Prompt]],
                 **options: Any) -> List[Result]:
        """An answer for each prompt, in their order.

        prompts: texts or lists of token ids; one alone gives a list of one.
        max_tokens (128; -1: until the context is full), temperature (0.8; 0 is
        greedy), top_k, top_p, min_p, repeat_penalty, repeat_last_n, seed, stop
        (a text or several), ignore_eos, logprobs (n: scores with the n best
        beside each), echo (scores of the prompt too), parse_special (control
        tokens written in a text count as such).
        """
        prompts, _ = self._prompts(prompts)
        requests = self._requests(prompts, options, "prompts")
        return [_result(fields)
                for fields in self._in_order(requests, "prompts")]

    def stream(self, prompt: Prompt, **options: Any) -> Iterator[str]:
        """The answer to one prompt, in pieces of whole characters."""
        request, = self._requests([prompt], options, "prompts")
        return self._pieces(request)

    def score(self, prompts: Union[Prompt, Iterable[Prompt]], *,
              logprobs: int = 0, parse_special: bool = False
              ) -> List[List[TokenScore]]:
        """Log-probabilities of each prompt's second token and all behind it."""
        options = {"max_tokens": 0, "logprobs": logprobs, "echo": True,
                   "parse_special": parse_special}
        prompts, _ = self._prompts(prompts)
        requests = self._requests(prompts, options, "prompts")
        return [_scores(fields["prompt_scores"])
                for fields in self._in_order(requests, "prompts")]

    def embed(self, texts: Union[Prompt, Iterable[Prompt]], *,
              pooling: Optional[Literal["mean", "last", "cls"]] = None,
              normalize: bool = True, parse_special: bool = False
              ) -> "NDArray[float32]":
        """A vector for each text, from the hidden states of its tokens.

        texts: one text (or the token ids of one) gives one vector, an array
        [embedding_size]; a list of such gives [len(texts), embedding_size], in
        their order. The arrays are numpy's, of float32. Where numpy is not
        installed they are lists of floats and lists of those.
        pooling: "mean" of all tokens, the "last" or the first one's ("cls");
        None: what the model's file says, else the mean.
        normalize: to length 1, so that a dot product is the cosine.

        A vector has the same bits in any company. A text longer than the
        context is an InvalidRequest; nothing is cut off.
        """
        try:
            _engine.Request().set_embed(pooling, normalize)
        except _engine.EngineError as error:
            raise _error(*error.args) from None
        prompts, single = self._prompts(texts)
        requests = self._requests(prompts, {"parse_special": parse_special},
                                  "texts")
        for request in requests:
            request.set_embed(pooling, normalize)
        with closing(self._in_order(requests, "texts")) as results:
            rows = (fields["embedding"] for fields in results)
            found = vectors.matrix(rows, len(requests), self.embedding_size)
        return found[0] if single else found

    def tokenize(self, text: str, *, parse_special: bool = False) -> List[int]:
        """Ids of a text, without what is put before a prompt."""
        return self._open().encode(text, parse_special)

    def token_bytes(self, token: int) -> bytes:
        """What a token stands for."""
        return self._open().decode(token)

    @property
    def stats(self) -> Stats:
        """Counts since the engine was opened: requests, tokens, bytes, seconds."""
        return self._open().stats()

    @property
    def context(self) -> int:
        """Most tokens of a prompt and its answer together."""
        return self._open().context

    @property
    def embedding_size(self) -> int:
        """How many numbers a vector of `embed` has."""
        return self._open().embedding_size

    @property
    def device(self) -> str:
        """"cpu", or the card's own name."""
        return self._open().device

    def close(self) -> None:
        """Ends what is under way. Closing twice is fine."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def _open(self) -> "_engine.Engine":
        if self._engine is None:
            raise Error("FAILED_PRECONDITION", "the engine is closed")
        return self._engine

    @staticmethod
    def _prompts(given: Any) -> Tuple[List[Prompt], bool]:
        """All of them, and whether it was one alone."""
        if isinstance(given, (str, bytes, bytearray)):
            return [given], True
        if isinstance(given, Mapping):
            raise TypeError("expected texts or token ids, got "
                            f"{type(given).__name__}")
        prompts = list(given)
        if prompts and _is_token(prompts[0]):
            return [prompts], True
        return prompts, False

    def _requests(self, prompts: List[Prompt], options: Dict[str, Any],
                  name: str) -> List["_engine.Request"]:
        engine = self._open()
        options = dict(options)
        parse_special = options.pop("parse_special", False)
        requests = []
        for i, prompt in enumerate(prompts):
            request = self._request(dict(options))
            generate = request.generate
            which = f"{name}[{i}]"
            generate.prompt = (
                _text_ids(engine, prompt, parse_special, which)
                if isinstance(prompt, str) else _token_ids(prompt, which))
            request.generate = generate
            requests.append(request)
        return requests

    @staticmethod
    def _request(options: Dict[str, Any]) -> "_engine.Request":
        request = _engine.Request()
        generate = request.generate
        sampling = generate.sampling
        for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty",
                     "repeat_last_n", "seed"):
            if name in options:
                setattr(sampling, name, options.pop(name))
        generate.sampling = sampling
        for name in ("max_tokens", "ignore_eos"):
            if name in options:
                setattr(generate, name, options.pop(name))
        stop = options.pop("stop", [])
        generate.stop = [stop] if isinstance(stop, str) else list(stop)
        request.generate = generate
        for name in ("logprobs", "echo"):
            if name in options:
                setattr(request, name, options.pop(name))
        if options:
            raise TypeError(f"unknown options: {', '.join(sorted(options))}")
        return request

    def _in_order(self, requests: List["_engine.Request"], name: str
                  ) -> Generator[Dict[str, Any], None, None]:
        """Results in the order of the requests, as many under way as fit.

        Of several requests an error says which it was: prompts[3].
        """
        waiting = deque(requests)
        pending: "deque[_engine.Pending]" = deque()
        try:
            while waiting or pending:
                while waiting:
                    try:
                        submitted = self._submit(waiting[0])
                    except InvalidRequest as error:
                        if len(requests) == 1:
                            raise
                        i = len(requests) - len(waiting)
                        raise InvalidRequest(
                            error.code, f"{name}[{i}]: {error}") from None
                    if submitted is None:
                        break
                    pending.append(submitted)
                    waiting.popleft()
                if not pending:  # the queue is full of others' requests
                    time.sleep(_GLANCE_SECONDS)
                elif pending[0].wait(_GLANCE_SECONDS, False):
                    yield _fields(pending.popleft())
        finally:
            for one in pending:
                self._cancel(one)

    def _pieces(self, request: "_engine.Request") -> Iterator[str]:
        submitted = self._submit(request)
        while submitted is None:
            time.sleep(_GLANCE_SECONDS)
            submitted = self._submit(request)
        try:
            while True:
                submitted.wait(_GLANCE_SECONDS, True)
                done = submitted.result()  # first, so that no text is missed
                text = submitted.take_text()
                if text:
                    yield text
                if done is not None:
                    _fields(submitted)
                    return
        finally:
            self._cancel(submitted)

    def _cancel(self, pending: "_engine.Pending") -> None:
        if self._engine is not None:
            self._engine.cancel(pending)

    def _submit(self, request: "_engine.Request") -> Optional["_engine.Pending"]:
        try:
            return self._open().try_submit(request)
        except _engine.EngineError as error:
            raise _error(*error.args) from None
