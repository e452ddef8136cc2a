"""Decode damaged audio files, and print a digest of each, or the error.

    damaged_sounds.py FOLDER COUNT SEED

Run with two values of ``MALLOC_PERTURB_``, so that memory is filled with another byte each time: differing results
contain uninitialized memory.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
from pathlib import Path

import av
import numpy as np
import torch

from tests.helpers.damaged_videos import damaged
from torchdali.codecs.audio import decode
from torchdali.errors import DecodeError

KINDS = [{}, {"dtype": torch.int16}, {"downmix": True}]


def digest(data: bytes, dice: random.Random) -> str:
    # NumPy caches small blocks, which glibc does not fill.
    np.full(1 << 16, int(os.environ.get("MALLOC_PERTURB_", "0")), np.uint8)
    try:
        found, rate = decode(torch.frombuffer(bytearray(data), dtype=torch.uint8), **dice.choice(KINDS))
    except DecodeError as error:
        return f"refused: {str(error)[:80]!r}"
    return f"{tuple(found.shape)} {rate} {hashlib.sha1(np.ascontiguousarray(found).tobytes()).hexdigest()[:12]}"


def main(folder: str, count: int, seed: int) -> None:
    av.logging.set_level(av.logging.PANIC)
    originals = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
    for number in range(count):
        dice = random.Random(seed + number)
        data = damaged(dice.choice(originals), dice)
        print(number, digest(data, dice) if data else "empty", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
