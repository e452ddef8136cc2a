"""``python -m torchdali.reference FOLDER`` writes the pages of the reference; ``--pictures`` draws its images."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torchdali.ops  # noqa: F401  declares the operators
from torchdali.reference import write
from torchdali.reference._pictures import files


def main() -> None:
    """Write the reference, or its images."""
    parser = argparse.ArgumentParser(prog="python -m torchdali.reference", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where the files are written")
    parser.add_argument("--pictures", action="store_true", help="write the pictures instead of the pages")
    options = parser.parse_args()
    if not options.pictures:
        write(options.folder)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files(Path(folder)).items():
            (options.folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
