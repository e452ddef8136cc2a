"""``torchdali doctor``: what is installed, which devices and codecs work, what to install.

Nothing is taken on trust: each codec decodes a small image that is made on the spot, each device
adds two numbers.
"""

from __future__ import annotations

import io
import os
import platform
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from typing import Any

import numpy as np
import torch
from PIL import Image

import torchdali
from torchdali import fn, types
from torchdali.errors import MissingExtraError

__all__ = ["run"]

DEVELOPMENT = frozenset(("all", "test", "parity", "lint", "bench"))
SIZE = (48, 32)


class State(Enum):
    """Whether a thing works, is not there, or is there and fails; the value is its mark."""

    WORKS = "ok"
    MISSING = "-"
    BROKEN = "!!"


@dataclass(frozen=True)
class Finding:
    """One thing that was tried."""

    name: str
    state: State
    text: str

    def __str__(self) -> str:
        return f"  {self.state.value:4}{self.name:28} {self.text}"


def _picture(mode: str) -> Image.Image:
    """A smooth picture of 48 x 32 pixels."""
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    if mode == "I;16":
        return Image.fromarray((x * 1000 + y * 500).astype(np.uint16))
    planes = np.stack([x * 5, y * 7, 255 - x * 3], axis=-1).astype(np.uint8)
    return Image.fromarray(planes).convert(mode)


# name: mode, format and options with which Pillow writes it
CODECS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "JPEG": ("RGB", "JPEG", {"quality": 95}),
    "JPEG, progressive": ("RGB", "JPEG", {"quality": 95, "progressive": True}),
    "JPEG, gray": ("L", "JPEG", {"quality": 95}),
    "JPEG, CMYK": ("CMYK", "JPEG", {"quality": 95}),
    "PNG": ("RGB", "PNG", {}),
    "PNG, palette": ("P", "PNG", {}),
    "PNG, alpha": ("RGBA", "PNG", {}),
    "PNG, 16 bit": ("I;16", "PNG", {}),
    "WebP": ("RGB", "WEBP", {"quality": 95}),
    "BMP": ("RGB", "BMP", {}),
    "PNM": ("RGB", "PPM", {}),
    "TIFF": ("RGB", "TIFF", {}),
    "TIFF, 16 bit": ("I;16", "TIFF", {}),
    "JPEG 2000": ("RGB", "JPEG2000", {"irreversible": False}),
    "JPEG 2000, 16 bit": ("I;16", "JPEG2000", {"irreversible": False}),
}


def _expected(mode: str, picture: Image.Image) -> np.ndarray[Any, np.dtype[np.int64]]:
    if mode == "I;16":
        gray = np.round(np.asarray(picture) / 257).astype(np.int64)
        return np.repeat(gray[..., None], 3, axis=-1)
    return np.asarray(picture.convert("RGB")).astype(np.int64)


def try_codec(name: str) -> Finding:
    """Write a small image, decode it, and compare."""
    mode, form, options = CODECS[name]
    picture, buffer = _picture(mode), io.BytesIO()
    try:
        picture.save(buffer, form, **options)
    except (OSError, KeyError) as error:
        return Finding(name, State.MISSING, f"not tried: Pillow cannot write it here ({error})")
    data = torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)
    try:
        decoded = fn.decoders.image(data, output_type=types.RGB)
    except MissingExtraError as error:
        return Finding(name, State.MISSING, str(error))
    except Exception as error:
        return Finding(name, State.BROKEN, f"fails: {error}")
    return _compare(name, np.asarray(decoded), _expected(mode, picture))


def _compare(name: str, found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> Finding:
    if found.shape != expected.shape:
        return Finding(name, State.BROKEN, f"decodes to {found.shape}, not {expected.shape}")
    error = float(np.abs(found.astype(np.int64) - expected).mean())
    if error > 4:
        return Finding(name, State.BROKEN, f"decodes to other pixels ({error:.1f} off)")
    return Finding(name, State.WORKS, "decodes")


def packages() -> Iterator[Finding]:
    """The packages of each extra, as this installation declares them."""
    try:
        lines = metadata.requires("torchdali") or []
    except metadata.PackageNotFoundError:
        yield Finding("torchdali", State.MISSING, "not installed by pip: pip install -e .")
        return
    for line in lines:
        match = re.match(r"""([\w.-]+)[^;]*;.*extra == ['"]([\w-]+)['"]""", line)
        if match and match[2] not in DEVELOPMENT and match[1] != "torchdali":
            yield _package(match[1], match[2])


def _package(name: str, extra: str) -> Finding:
    try:
        return Finding(name, State.WORKS, f"{metadata.version(name)} ({extra})")
    except metadata.PackageNotFoundError:
        return Finding(name, State.MISSING, f"pip install 'torchdali[{extra}]'")


def devices() -> Iterator[Finding]:
    """The processor, and every accelerator that torch sees."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("cpu", State.WORKS, f"{cores} cores, {platform.machine()}")
    if not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        why = f"torch is built for {built} but sees none" if built else "torch is built without"
        yield Finding("accelerator", State.MISSING, f"{why}; use device_id=None")
    for index in range(torch.cuda.device_count()):
        yield _device(index)


def _device(index: int) -> Finding:
    name = f"cuda:{index}"
    try:
        total = torch.ones(2, device=name).sum().item()
        state = State.WORKS if total == 2 else State.BROKEN
        return Finding(name, state, torch.cuda.get_device_name(index))
    except Exception as error:
        return Finding(name, State.BROKEN, f"fails: {error}")


def _print(title: str, findings: Iterable[Finding]) -> bool:
    """Print findings as they come, and return whether none is broken."""
    print(f"\n{title}")
    sound = True
    for finding in findings:
        print(finding, flush=True)
        sound &= finding.state is not State.BROKEN
    return sound


def _version(name: str) -> str:
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return f"{name} (not installed)"


def run() -> int:
    """Print all findings; return 1 if something that is there does not work."""
    versions = [_version(name) for name in ("torch", "torchvision", "numpy", "pillow")]
    own = f"torchdali {torchdali.__version__}, Python {platform.python_version()}"
    print(", ".join([own, *versions]))
    sound = _print("Devices (each added two numbers)", devices())
    sound &= _print("Optional packages", packages())
    sound &= _print("Image codecs (each decoded a small image)", map(try_codec, CODECS))
    if not sound:
        print("\nWhat is marked !! is there but does not work; please report it.")
    return int(not sound)
