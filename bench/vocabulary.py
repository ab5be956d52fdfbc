"""How many tokens texts are: by a real vocabulary (o200k_base) where it can be had, else by our own estimate."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence

from bench.compare.install import Unavailable, cache, python_package
from holdfast.model.shortening import estimate

_PACKAGE = "bpe-openai==0.1.4"
_COUNT = """
import json, sys, bpe_openai
encoding = bpe_openai.get_encoding("o200k_base")
print(json.dumps([len(encoding.encode(text)) for text in json.load(sys.stdin)]))
"""

Count = Callable[[Sequence[str]], list[int]]


def counter(may_install: bool) -> tuple[Count, str]:
    """What counts the tokens of each text, and by what it does."""
    try:
        if may_install:
            python = python_package(cache(), _PACKAGE) / "python"
            return (lambda texts: _counted(str(python), texts)), "o200k_base"
    except Unavailable as why:
        print(f"bench: {why}", file=sys.stderr)
    return (lambda texts: [estimate(text) for text in texts]), "estimated"


def _counted(python: str, texts: Sequence[str]) -> list[int]:
    words = [python, "-c", _COUNT]
    done = subprocess.run(words, input=json.dumps(list(texts)), stdout=subprocess.PIPE, text=True, check=True)
    found: list[int] = json.loads(done.stdout)
    return found
