"""``python -m docs.reference`` writes the reference's pages; with ``--pictures``, also the images of its examples."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torchdali.ops  # noqa: F401  declares the operators
from docs.reference import write
from docs.reference.pictures import files

DOCS = Path(__file__).resolve().parents[1]


def main() -> None:
    """Write the pages, and the images."""
    parser = argparse.ArgumentParser(prog="python -m docs.reference", description=__doc__)
    parser.add_argument("--pictures", action="store_true", help="also write the images")
    options = parser.parse_args()
    write(DOCS / "operators")
    if options.pictures:
        with tempfile.TemporaryDirectory() as folder:
            for name, data in files(Path(folder)).items():
                (DOCS / "pictures" / name).write_bytes(data)


if __name__ == "__main__":
    main()
