"""Read frames of damaged videos, and print a digest of each, or the error.

    damaged_videos.py FOLDER COUNT SEED

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

from torchdali.codecs.video import VideoDecoder
from torchdali.errors import DecodeError

FILL = int(os.environ.get("MALLOC_PERTURB_", "0"))


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Return data with bytes changed, a range zeroed or repeated, or the end removed."""
    made = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        place, length = dice.randrange(len(made)), dice.choice([1, 2, 8, 64, 600])
        kind = dice.randrange(5)
        if kind == 0:
            made[place] = dice.randrange(256)
        elif kind == 1:
            made[place : place + length] = bytes(len(made[place : place + length]))
        elif kind == 2:
            made[place : place + length] = dice.randbytes(len(made[place : place + length]))
        elif kind == 3:
            made[place:place] = made[place : place + length]
        elif len(made) > 200:
            del made[max(200, place) :]
    return bytes(made)


def digest(data: bytes, dice: random.Random) -> str:
    source = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    try:
        decoder = VideoDecoder(source)
    except DecodeError as error:
        return f"refused: {str(error)[:60]}"
    lines = []
    for frame in dice.sample(range(len(decoder.index)), min(6, len(decoder.index))):
        out = torch.full((1, *decoder.shape), FILL, dtype=torch.uint8)
        try:
            decoder.read([frame], out)
            lines.append(f"{frame}:{hashlib.sha1(np.ascontiguousarray(out).tobytes()).hexdigest()[:10]}")
        except DecodeError as error:
            assert f"frame {frame} " in str(error) or "cannot" in str(error) or str(error), error
            lines.append(f"{frame}:error")
    decoder.close()
    return " ".join(lines)


def main(folder: str, count: int, seed: int) -> None:
    av.logging.set_level(av.logging.PANIC)
    originals = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
    for number in range(count):
        dice = random.Random(seed + number)
        print(number, digest(damaged(dice.choice(originals), dice), dice), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
