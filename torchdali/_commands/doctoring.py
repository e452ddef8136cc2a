"""``torchdali doctor``: installed packages, working devices and codecs, and missing packages.

All components are tested: each codec decodes a small generated image, and each device adds two numbers.
"""

from __future__ import annotations

import base64
import io
import platform
import re
import subprocess
import sys
import sysconfig
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

import torchdali
from torchdali import fn, types
from torchdali.cores import cores
from torchdali.errors import MissingExtraError
from torchdali.installation import extra_command, rebuild_command
from torchdali.pipeline import missing_kernel_requirement, native_status, pipeline_def
from torchdali.tensors import TensorListGPU

__all__ = ["run"]

Array = NDArray[Any]

DEVELOPMENT = frozenset(("all", "test", "parity", "lint", "docs", "bench"))
SIZE = (48, 32)


class ComponentState(Enum):
    """State of a component: it works, is missing, or fails. The value is the mark that is printed."""

    WORKS = "ok"
    MISSING = "-"
    BROKEN = "!!"


@dataclass(frozen=True)
class Finding:
    """The result of one test."""

    name: str
    state: ComponentState
    text: str

    def __str__(self) -> str:
        return f"  {self.state.value:4}{self.name:28} {self.text}"


def _smooth_image(mode: str) -> Image.Image:
    """Return a smooth image of 48 x 32 pixels."""
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    planes = np.stack([x * 5, y * 7, 255 - x * 3], axis=-1).astype(np.uint8)
    return Image.fromarray(planes).convert(mode)


def _deep_image() -> Array:
    """Return a smooth 16-bit image of 32 x 32 pixels."""
    y, x = np.mgrid[:32, :32]
    return np.stack([x * 1000, y * 1500, 60000 - x * 1000], axis=-1)


# name: the mode, format and options with which Pillow writes the image
WRITTEN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "JPEG": ("RGB", "JPEG", {"quality": 95}),
    "JPEG, progressive": ("RGB", "JPEG", {"quality": 95, "progressive": True}),
    "JPEG, gray": ("L", "JPEG", {"quality": 95}),
    "JPEG, CMYK": ("CMYK", "JPEG", {"quality": 95}),
    "PNG": ("RGB", "PNG", {}),
    "PNG, palette": ("P", "PNG", {}),
    "PNG, alpha": ("RGBA", "PNG", {}),
    "WebP": ("RGB", "WEBP", {"quality": 95}),
    "BMP": ("RGB", "BMP", {}),
    "PNM": ("RGB", "PPM", {}),
    "TIFF": ("RGB", "TIFF", {}),
    "GIF": ("P", "GIF", {}),
    "AVIF": ("RGB", "AVIF", {"quality": 95}),
    "JPEG 2000": ("RGB", "JPEG2000", {"irreversible": False}),
}


# The image of `_deep_image`, 32 x 32 pixels with 16 bits and three channels, as a file in each format. The files are
# compressed by zlib and encoded in base85.
DEEP = {
    "PNG, 16 bit": (
        r"c-rd>@N?(olHy`uVBq!ia0vp^3Lq@N1SHpV7(QTN;3)ERaSVyz<UOd!-Ikl!_VDx5eJqa6-n+XpT^-vFZb^yy)zq"
        r"<J>Op32Zz&lLDIag|<bw*EK1@}eoM0d!_Dxw#Ow3R2oA5g6FBW!xZvK`@?A_oNp}a=$8b@}^Z6G#1R0YIR2;uEus"
        r"jpxusPG+#6o1Xr`g_l@NI;E)3h#gz<sN|$erN`ks(X;VzkWWl>H=x7LH!6fAyms@I`voM{vY4JTM}^Y8o@lU)N3r"
        r"RlK*jf{+{y$oQvIExnQZk2h8_ZQ0RwW*C>n!>-WV3yo)t%pf0ulaQ**pJ9h%Eg?ZQ(i=&wD|2|Ba7yg`GPhnE}ZC"
        r"^`aH2ghCVKjW4OJQ1k7=E9!KzRS}eQh6sIK%2OsH@ojJ?y72E%ooOqbwfke^FR0{rTZep&!oQr!Xzeum4L~Jk-6U"
        r"Fbq!D@1?9*+yC!4g-*DwPhpl0um4Y3v9$l^Jqok*&t3|%^!fi3)^PX#eWx%U-kqk%5A{q6eJm+wR~JnOHbNLYUHx"
        r"3vIVCg!0Qwia^8"
    ),
    "TIFF, 16 bit": (
        r"c-r&y)MD7jz`#&3CpjS@!K319)67Q4N9O}nBqiQ$;LH8~{(;=Bck`7jw%m<Zu-kI?y|VR|yXzO)Y`J@Wk>!@V{~h"
        r"u(cGvfxyioR^XZ6Cj|Ag9s1jF`)Z|h{|1Bt!`K(6{j=i7hTliIiaey+lw`#n4bXlnZtAWM1*ko7qP$l9MFaqFG^C"
        r"9^Ge_b*7#*u6jP(uK16BRxP9CRYMAGkLdd`+a|n3{cI+I-q?guPuC2#~>}kkix^jz{t$N2z0*!5HljNnSg9&ARPh"
        r"}V1|lw05Kbs%>=}Pj4W_*QK&dbj~J3U;!ri)fLI194#Kub<^)6SiUJ7$fdCjXf*}Aw$7@I"
    ),
    "JPEG 2000, 16 bit": (
        r"c-muNVBpCLP*C9IYUg5LU=T?wsVvAUFj4@r8KAT-kj?<oVwo8!ML=2sjG6h_L24NIlk;<m7{N>d1_s6&pyK5J{{I"
        r"6R^ub~ZPz(d8d}e+|MhN;J#J~d-U}RurVPRnWAHyK*(9qE_0U7;IVNhjYbS_FwEJ;mKNUBuuFG$Vv3UGB-C`&CW&"
        r"dkqKFw!&CGyXq;feUQ-SD-nQ&;K#tVSP{zqS#)Z2T?4g`N#iBuraU{<S+iu#@N6(xgE@BS13RHpP8wFm+41l-@^Z"
        r"njSbwEQ%er-2Mh9XGngDZ_}_uaK}kv=+R=$ut$xA(1V#tux~_F{$t!35uLnsoDCY5jB$W^RXZT>YaOTN(4NCj|1%"
        r"3KZS=7IvzTtxHGJVnLDKS<e7fWl-gVdOQosO*LfPKP;_~plq|7<Q`U^w6`9JWMxf&D~=xob2X+&w!P4u*QG+}1Gw"
        r"D~tPm6j|B-n*id2mc0"
    ),
}

CODECS = (*WRITTEN, *DEEP)


def _encode_sample(name: str) -> tuple[bytes, Array]:
    """Return a small image: its bytes in the named format, and its RGB pixels."""
    if name in DEEP:
        return zlib.decompress(base64.b85decode(DEEP[name])), np.round(_deep_image() / 257).astype(int)
    mode, format_name, options = WRITTEN[name]
    image, buffer = _smooth_image(mode), io.BytesIO()
    image.save(buffer, format_name, **options)
    return buffer.getvalue(), np.asarray(image.convert("RGB")).astype(int)


def try_codec(name: str) -> Finding:
    """Decode a small image and compare its pixels."""
    try:
        encoded, expected = _encode_sample(name)
    except (OSError, KeyError) as error:
        return Finding(name, ComponentState.MISSING, f"not tested: Pillow cannot write this format here ({error})")
    data = torch.frombuffer(bytearray(encoded), dtype=torch.uint8)
    try:
        decoded = fn.decoders.image(data, output_type=types.RGB)
    except MissingExtraError as error:
        return Finding(name, ComponentState.MISSING, f"needs {error.package}, of the extra {error.extra}: see above")
    except Exception as error:
        return Finding(name, ComponentState.BROKEN, f"fails: {error}")
    return _compare(name, np.asarray(decoded), expected)


def _compare(name: str, pixels: Array, expected: Array, text: str = "decodes") -> Finding:
    if pixels.shape != expected.shape:
        return Finding(name, ComponentState.BROKEN, f"decodes to {pixels.shape}, not {expected.shape}")
    error = float(np.abs(pixels.astype(int) - expected).mean())
    if error > 4:
        return Finding(name, ComponentState.BROKEN, f"decodes to wrong pixels ({error:.1f} off)")
    return Finding(name, ComponentState.WORKS, text)


def extras() -> Iterator[Finding]:
    """Yield each extra that this installation declares, with its packages.

    A package that belongs to several extras is listed only with the first extra.
    """
    try:
        lines = metadata.requires("torchdali") or []
    except metadata.PackageNotFoundError:
        yield Finding("torchdali", ComponentState.MISSING, f"not installed by pip: {rebuild_command()}")
        return
    extra_of: dict[str, str] = {}
    for line in lines:
        match = re.match(r"""([\w.-]+)[^;]*;.*extra == ['"]([\w-]+)['"]""", line)
        if match and match[2] not in DEVELOPMENT and match[1] != "torchdali":
            extra_of.setdefault(match[1], match[2])
    for extra in dict.fromkeys(extra_of.values()):
        yield _check_extra(extra, [name for name, own in extra_of.items() if own == extra])


def _check_extra(extra: str, names: Sequence[str]) -> Finding:
    installed, missing = [], []
    for name in names:
        try:
            installed.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if not missing:
        return Finding(extra, ComponentState.WORKS, ", ".join(installed))
    return Finding(extra, ComponentState.MISSING, f"{extra_command(extra)}  (brings {', '.join(missing)})")


def native() -> Iterator[Finding]:
    """Report whether the native library is used, and test the library with a pipeline that resizes a small image."""
    status = native_status()
    if status.library is None:
        state = ComponentState.BROKEN if status.broken else ComponentState.MISSING
        yield Finding("libtorchdali", state, f"not used: {status.text}")
        return
    try:
        encoded = np.frombuffer(_encode_sample("JPEG")[0], np.uint8)
        pipe = _resize(encoded, batch_size=1, num_threads=1, device_id=None)
        (batch,) = pipe.run()
        pipe.close()
        pixels = fn.decoders.image(torch.from_numpy(encoded.copy()))
        expected = np.asarray(fn.resize(pixels, size=[16, 24])).astype(int)
        yield _compare("libtorchdali", np.asarray(batch[0]), expected, f"used: {status.text}")
    except Exception as error:
        yield Finding("libtorchdali", ComponentState.BROKEN, f"fails: {error}")


@pipeline_def
def _resize(encoded: Array) -> Any:
    images = fn.decoders.image(fn.external_source(source=lambda: [encoded]))
    images = fn.resize(images, size=[16, 24])
    return fn.crop_mirror_normalize(images, dtype=torch.uint8, output_layout="HWC")


def gil() -> Finding:
    """Report whether the GIL is on. If free-threaded Python runs with the GIL, also report the reason."""
    name = "threads"
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return Finding(name, ComponentState.WORKS, "Python has a GIL")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return Finding(name, ComponentState.WORKS, "free-threaded Python: the GIL is off")
    return Finding(name, ComponentState.MISSING, f"free-threaded Python, but the GIL is on: {_explain_gil()}")


def _explain_gil() -> str:
    """Return the reason why the GIL is on, for example the module that turned the GIL on.

    Python warns when the import of a module turns the GIL on. This function imports all modules again, in a new
    process, and reads the warning.
    """
    if getattr(sys.flags, "gil", None):
        return "by PYTHON_GIL=1 or -X gil=1"
    names = [name for name in sys.modules if "." not in name and name not in sys.stdlib_module_names]
    imports = subprocess.run([sys.executable, "-c", _IMPORTS, *names], capture_output=True, text=True, check=False)
    warning = re.search(r"GIL\) has been enabled to load module '([\w.]+)'", imports.stderr)
    module = f"module {warning[1]!r}" if warning else "an imported module"
    return f"{module} needs it. PYTHON_GIL=0 keeps it off, at your own risk"


_IMPORTS = """\
import contextlib, importlib, sys
for name in sys.argv[1:]:
    with contextlib.suppress(Exception):
        importlib.import_module(name)
"""


def devices() -> Iterator[Finding]:
    """Report the CPU, and test each GPU.

    If torch sees a GPU, also test the GPU kernels, and decoding with ``device="mixed"``.
    """
    yield Finding("cpu", ComponentState.WORKS, f"{cores()} cores, {platform.machine()}")
    if not torch.cuda.is_available():
        kinds = {"CUDA": torch.version.cuda, "ROCm": torch.version.hip}
        built = next((f"{name} {version}, no GPU found" for name, version in kinds.items() if version), "")
        reason = built or "this is a CPU build of torch"
        yield Finding("accelerator", ComponentState.MISSING, f"{reason}; use device_id=None")
    for index in range(torch.cuda.device_count()):
        yield _check_device(index)
    if torch.cuda.is_available():
        yield _check_kernels()
        yield _check_mixed()


def _check_device(index: int) -> Finding:
    name = f"cuda:{index}"
    try:
        total = torch.ones(2, device=name).sum().item()
        state = ComponentState.WORKS if total == 2 else ComponentState.BROKEN
        return Finding(name, state, torch.cuda.get_device_name(index))
    except Exception as error:
        return Finding(name, ComponentState.BROKEN, f"fails: {error}")


def _check_mixed() -> Finding:
    """Decode a small image with ``device="mixed"``, and report which hardware decodes JPEGs."""
    name = "mixed decoding"
    try:
        content, expected = _encode_sample("JPEG")
        encoded = np.frombuffer(content, np.uint8)
        pipe = _mixed_pipeline(encoded, batch_size=1, num_threads=1, device_id=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            batch: Any = pipe.run()[0]
        pixels, text = np.asarray(batch.as_cpu().at(0)), str(pipe.explain())
        pipe.close()
        failures = [str(w.message) for w in caught if "the decoder for JPEGs" in str(w.message)]
        if failures:
            return Finding(name, ComponentState.BROKEN, failures[0])
        uses_engine = "_decode_share" in text
        engine_text = (
            "a hardware engine decodes a share of hw_decoder_load of the JPEGs"
            if uses_engine
            else "no engine for JPEGs"
        )
        description = f"on CPU threads, into pinned memory; {engine_text}"
        return _compare(name, pixels, np.asarray(expected).astype(int), description)
    except Exception as error:
        return Finding(name, ComponentState.BROKEN, f"fails: {error}")


@pipeline_def
def _mixed_pipeline(encoded: Array) -> Any:
    files = fn.external_source(source=lambda: [encoded])
    return fn.decoders.image(files, device="mixed", hw_decoder_load=1.0)


def _check_kernels() -> Finding:
    """Resize a batch of one small image with the Triton kernels."""
    name = "kernels for batches"
    lacking = missing_kernel_requirement()
    if lacking is not None:
        install_hint = "pip install triton" if lacking == "Triton" else "for example apt install gcc python3-dev"
        text = (
            f"not used: they need {lacking} ({install_hint}); GPU operators process samples one by one, which is slow"
        )
        return Finding(name, ComponentState.MISSING, text)
    try:
        image = torch.from_numpy(np.asarray(_smooth_image("RGB")).copy())[None]
        expected = np.asarray(fn.resize(image[0], size=[16, 24])).astype(int)
        batch = fn.resize(TensorListGPU(image.cuda(), "HWC"), size=[16, 24])
        return _compare(
            name,
            np.asarray(batch.as_cpu().at(0)),
            expected,
            "used: Triton kernels resize, warp, filter, map, fill, reduce and normalize batches",
        )
    except Exception as error:
        return Finding(name, ComponentState.BROKEN, f"fails: {error}")


def _print_section(title: str, findings: Iterable[Finding]) -> bool:
    """Print each finding as soon as its test is done, and return True if no finding is broken."""
    print(f"\n{title}")
    is_healthy = True
    for finding in findings:
        print(finding, flush=True)
        is_healthy &= finding.state is not ComponentState.BROKEN
    return is_healthy


def codecs() -> Iterator[Finding]:
    """Test all codecs; all codecs that work share one finding."""
    findings = list(map(try_codec, CODECS))
    working = [finding.name for finding in findings if finding.state is ComponentState.WORKS]
    yield Finding(f"{len(working)} of {len(findings)}", ComponentState.WORKS, "; ".join(working))
    yield from (finding for finding in findings if finding.state is not ComponentState.WORKS)


def _version(name: str) -> str:
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return f"{name} (not installed)"


def run() -> int:
    """Print all findings; return 1 if an installed component does not work, otherwise 0."""
    versions = [_version(name) for name in ("torch", "torchvision", "numpy", "pillow")]
    own = f"torchdali {torchdali.__version__}, Python {platform.python_version()}"
    print(", ".join([own, *versions]))
    is_healthy = _print_section("Fast path (resized a small image)", native())
    is_healthy &= _print_section("Devices (added two numbers on each)", devices())
    is_healthy &= _print_section("Python (after all imports above)", [gil()])
    is_healthy &= _print_section("Extras (errors name the extra to install)", extras())
    is_healthy &= _print_section("Image codecs (decoded a small image with each)", codecs())
    if not is_healthy:
        print("\nA line with !! is an installed part that doesn't work; please report it.")
    return int(not is_healthy)
