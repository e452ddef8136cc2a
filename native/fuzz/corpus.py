"""Make inputs to mutate: ``python corpus.py OUT FOLDER`` cuts small JPEGs of all kinds out of real ones.

Small ones are decoded a thousand times a second. Every fiftieth is copied as it is.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from PIL import Image

KINDS = [
    {"subsampling": "4:4:4"},
    {"subsampling": "4:2:2"},
    {"subsampling": "4:2:0"},
    {"subsampling": "4:2:0", "progressive": True},
    {"subsampling": "4:4:4", "progressive": True},
    {"subsampling": "4:2:0", "restart_marker_blocks": 3},
    {"subsampling": "4:2:2", "optimize": True},
]


def main(out: Path, files: list[Path]) -> None:
    """Write the corpus."""
    rng = random.Random(1)
    out.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files):
        if number % 50 == 0:
            (out / f"whole{number}.jpg").write_bytes(file.read_bytes())
        image = Image.open(file)
        image.load()
        width, height = (min(side, rng.randint(9, 120)) for side in image.size)
        x, y = (rng.randint(0, a - b) for a, b in zip(image.size, (width, height), strict=True))
        part = image.crop((x, y, x + width, y + height)).convert(rng.choice(["RGB", "RGB", "RGB", "L", "CMYK"]))
        block = Image.Exif()
        block[0x0112] = rng.randint(1, 8)
        options = {**KINDS[number % len(KINDS)], "quality": rng.randint(40, 98)}
        if part.mode == "L":
            options.pop("subsampling")
        if rng.random() < 0.4:
            options["exif"] = block.tobytes()
        part.save(out / f"{number}.jpg", "JPEG", **options)


if __name__ == "__main__":
    found = Path(sys.argv[2]).rglob("*")
    main(Path(sys.argv[1]), sorted(f for f in found if f.suffix.lower() in (".jpg", ".jpeg")))
