"""``python -m torchdali.reference`` prints the reference; ``--pictures FOLDER`` draws its pictures."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torchdali.ops  # noqa: F401  declares the operators
from torchdali.reference import reference
from torchdali.reference._pictures import files


def main() -> None:
    """Print the reference, or write its pictures."""
    parser = argparse.ArgumentParser(prog="python -m torchdali.reference", description=__doc__)
    parser.add_argument("--pictures", metavar="FOLDER", type=Path, help="write the pictures instead")
    target = parser.parse_args().pictures
    if target is None:
        print(reference(), end="")
        return
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files(Path(folder)).items():
            (target / name).write_bytes(data)


if __name__ == "__main__":
    main()
