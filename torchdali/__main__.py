"""``python -m torchdali``: the command line."""

from __future__ import annotations

from torchdali.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
