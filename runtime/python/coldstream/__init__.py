"""Language models larger than the memory given to them.

    import coldstream

    with coldstream.Engine("model.gguf", ram="8G") as engine:
        for result in engine.generate(["One", "Two"], max_tokens=16):
            print(result.text)

One sweep of the weights serves all prompts that are under way.
"""

from coldstream.engine import (Engine, Error, InvalidRequest, Result, Stats,
                               TokenScore)
from coldstream import _engine

__version__: str = _engine.version
__all__ = ["Engine", "Error", "InvalidRequest", "Result", "Stats", "TokenScore",
           "__version__"]
