"""Lazy Pillow images: only the region that the transforms keep is decoded.

When Pillow has opened a JPEG, this module reads the file but doesn't decode it yet. Crops, flips, one resize and
torchvision's color changes are only recorded. When the user's code needs pixels, the image becomes an ordinary object
of Pillow's own class, with bit-identical pixels. If decoding a file could raise an error, Pillow decodes the file
immediately, so that the error is raised at the same point as without lazy images.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from operator import methodcaller
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from torch import Tensor

from torchdali.ops._pictures import STORED, ImageProgram, ImageSource, TensorConversion, exceeds_pillow_limit

__all__ = ["convert_image", "convert_tensor", "make_lazy"]


def make_lazy(image: Any) -> Any:
    """Make an opened image lazy if it is an RGB or grayscale JPEG and not tiny; return other images unchanged."""
    if (
        type(image) is JpegImageFile
        and image._mode in ("RGB", "L")
        and image._size[0] * image._size[1] > MAX_EAGER_PIXELS
    ):
        vars(image)["_scan"] = image.fp.tell()  # type: ignore[union-attr]
        _set_class(image, LazyJpeg)
    return image


def convert_image(image: Any, conversion: TensorConversion, planar: bool) -> Tensor | None:
    """Convert a PIL image to a normalized tensor ``(3, H, W)`` in one step; None if torchvision must convert it.

    Args:
        image: The image, lazy or not.
        conversion: Dtype, mean and standard deviation of the tensor.
        planar: True to store the tensor as contiguous ``(3, H, W)``; False to store it as ``(H, W, 3)``.
    """
    if not isinstance(image, Image.Image) or image._mode != "RGB":
        return None
    deferred = image._defer() if isinstance(image, LazyImage) else None
    planes = None if deferred is None else deferred.to_tensor(conversion, planar)
    return _convert_pixels(np.array(image), conversion, planar) if planes is None else planes


def convert_tensor(image: Tensor, conversion: TensorConversion) -> Tensor | None:
    """Convert a uint8 tensor ``(3, H, W)`` that is stored as ``(H, W, 3)`` to a normalized tensor in one step.

    Return None for other tensors.
    """
    pixels = image.permute(1, 2, 0) if image.dim() == 3 else image
    is_supported = image.dtype == torch.uint8 and image.dim() == 3 and len(image) == 3 and pixels.is_contiguous()
    return _convert_pixels(pixels.as_subclass(Tensor).numpy(), conversion, False) if is_supported else None


def _convert_pixels(pixels: Any, conversion: TensorConversion, planar: bool) -> Tensor | None:
    height, width = pixels.shape[:2]
    return conversion.render(ImageSource(pixels).render, ImageProgram.of(height, width, STORED), planar)


class LazyImage(Image.Image):
    """A PIL image whose pixels aren't decoded yet.

    Attributes:
        _deferred: The pixels that are not decoded yet; None if the file was opened but not read.
    """

    _pillow: type = Image.Image
    _deferred: DeferredPixels | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """Pillow's own class, so that ``isinstance(image, Image.Image)`` works as usual."""
        return self._pillow

    # ---------------------------------------------------------------- recording

    def load(self) -> Any:
        """Read the file, but don't decode it yet."""
        return self._decode().load() if self._defer(("RGB", "L")) is None else _PixelAccess(self)

    def copy(self) -> Any:
        deferred = self._defer()
        if deferred is None:
            return self._decode().copy()
        return self._record(deferred, deferred.program, methodcaller("copy"))

    __copy__ = copy

    def convert(self, mode: Any = None, *arguments: Any, **named: Any) -> Any:
        """Record a conversion to RGB; decode the image for other conversions."""
        deferred = None if arguments or named or mode != "RGB" else self._defer(("RGB", "L"))
        if deferred is None or "transparency" in self.info:
            return self._decode().convert(mode, *arguments, **named)
        return self._record(deferred, deferred.program, methodcaller("convert", mode))

    def crop(self, box: Any = None) -> Any:
        """Record a crop; decode the image if the box reaches outside of the image."""
        deferred = self._defer() if _are_integers(box, 4) else None
        if deferred is not None:
            left, top, right, bottom = map(int, box)
            program = deferred.program.crop(top, left, bottom - top, right - left)
            if program is not None and not exceeds_pillow_limit(*program.size):
                return self._record(deferred, program, methodcaller("crop", box))
        return self._decode().crop(box)

    def resize(self, size: Any, resample: Any = None, box: Any = None, reducing_gap: Any = None) -> Any:
        """Record a resize; decode the image if a resize was recorded before."""
        is_supported = box is reducing_gap is None and isinstance(resample, (int, type(None))) and resample in _FILTERS
        deferred = self._defer() if is_supported and _are_integers(size, 2) else None
        if deferred is not None:
            program = deferred.program.resize(int(size[1]), int(size[0]), _FILTERS[resample])
            if program is not None and not exceeds_pillow_limit(*program.size):
                return self._record(deferred, program, methodcaller("resize", size, resample))
        return self._decode().resize(size, resample, box, reducing_gap)

    def transpose(self, method: Any) -> Any:
        """Record a flip; decode the image for rotations and other transpositions."""
        deferred = self._defer() if method in _FLIPS else None
        if deferred is None:
            return self._decode().transpose(method)
        horizontal = method == Image.Transpose.FLIP_LEFT_RIGHT
        return self._record(
            deferred, deferred.program.flip(horizontal, not horizontal), methodcaller("transpose", method)
        )

    def change_colors(self, steps: bytes, change: Callable[[Any], Any], keeps_info: bool) -> Any:
        """Record a color change; return the changed image, or None if this image isn't RGB or is already decoded.

        Args:
            steps: The change, encoded by `codecs.pixel_steps`.
            change: Function that applies the change to a decoded image.
            keeps_info: True if the changed image has the same ``info`` dictionary as this image.
        """
        deferred = self._defer()
        if deferred is None:
            return None
        image = self._record(deferred, deferred.program.change_pixels(steps, deferred.program.size), change)
        if not keeps_info:
            image.info = {}
        return image

    def _defer(self, modes: tuple[str, ...] = ("RGB",)) -> DeferredPixels | None:
        """Return the pixels that are not decoded yet.

        Return None if the image's mode isn't one of `modes`, or if Pillow must decode the image now.
        """
        return self._deferred if self._mode in modes else None

    def _record(self, deferred: DeferredPixels, program: ImageProgram, operation: Callable[[Any], Any]) -> Any:
        image: Any = Image.Image._new(self, Image.new("RGB", (1, 1)).im)
        image._size = program.size[1], program.size[0]
        vars(image).update(_im=None, _deferred=DeferredPixels(deferred.jpeg, program, (self, operation)))
        _set_class(image, LazyImage)
        return image

    # ---------------------------------------------------------------- decoding

    @property
    def im(self) -> Any:
        return _get_pillow_im(self) if self._deferred is None else self._decode().im

    @im.setter
    def im(self, core: Any) -> None:
        self._restore_pillow_class(core)

    def tobytes(self, *arguments: Any, **named: Any) -> Any:
        """Return the pixels without converting this object to Pillow's class."""
        deferred = None if arguments or named else self._defer()
        pixels = None if deferred is None else deferred.render()
        return self._decode().tobytes(*arguments, **named) if pixels is None else pixels.tobytes()

    def close(self) -> None:
        """Close the image without decoding it."""
        self._restore_pillow_class()
        self.close()

    def __eq__(self, other: object) -> bool:
        for image in (self, other):
            if isinstance(image, LazyImage):
                image._decode()
        return bool(self == other)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._decode().__reduce_ex__(protocol)

    def __getstate__(self) -> Any:
        return self._decode().__getstate__()

    def _decode(self) -> Any:
        """Convert this object to Pillow's own class, decode its pixels, and return the object.

        If the file was not read yet, don't decode the pixels; Pillow decodes them when they are needed.
        """
        deferred = self._deferred
        if deferred is None:
            self._restore_pillow_class()
            return self
        with deferred.jpeg.lock:
            if isinstance(self, LazyImage):  # False if another thread has converted the image
                pixels = None if deferred.is_unmodified else deferred.render()
                self._restore_pillow_class(
                    self._decode_with_pillow(deferred) if pixels is None else Image.fromarray(pixels).im
                )
        return self

    def _restore_pillow_class(self, core: Any = None) -> None:
        """Convert this object to Pillow's own class.

        Args:
            core: Pillow's image memory with the decoded pixels; None to set no pixels.
        """
        _set_class(self, self._pillow)
        for name in ("_deferred", "_scan"):
            vars(self).pop(name, None)
        if core is not None:
            self.im = core

    def _decode_with_pillow(self, deferred: DeferredPixels) -> Any:
        image, operation = deferred.origin
        return operation(image._decode() if isinstance(image, LazyImage) else image).im


class LazyJpeg(LazyImage, JpegImageFile):
    """A JPEG that Pillow has opened and that is not decoded yet.

    Attributes:
        _scan: Offset of the first scan's data in the file.
    """

    _pillow = JpegImageFile
    _scan: int

    def _defer(self, modes: tuple[str, ...] = ("RGB",)) -> DeferredPixels | None:
        if self._deferred is None and self._mode in modes:
            self._read()
        return super()._defer(modes)

    def _read(self) -> None:
        """Read the file and close it; do nothing if Pillow must decode the file now."""
        fp, tile = self.fp, self.tile
        if fp is None or tile != [("jpeg", (0, 0, *self._size), 0, (self._mode, ""))] or self.decoderconfig:
            return
        jpeg = JpegData.read(fp, self._scan, self.decodermaxblock, self._size)
        if jpeg is None:
            return
        self.tile, self.readonly, self.map = [], 0, None
        self._deferred = DeferredPixels(jpeg, ImageProgram.of(self._size[1], self._size[0], STORED), tile=tile)
        if self._exclusive_fp and self._close_exclusive_fp_after_loading:
            fp.close()
        self.fp = None

    def _decode_with_pillow(self, deferred: DeferredPixels) -> Any:
        image = object.__new__(JpegImageFile)
        vars(image).update(vars(self), tile=deferred.tile, fp=io.BytesIO(deferred.jpeg.data), _exclusive_fp=True)
        image.load()
        return image.im


class DeferredPixels:
    """Pixels that are not decoded yet: a JPEG file and the operations that were recorded for it.

    Args:
        jpeg: The file.
        program: The recorded operations.
        origin: The image before the last operation, and the operation as a function; () for an opened image.
        tile: Pillow's decoding instructions of an opened image.
    """

    def __init__(self, jpeg: JpegData, program: ImageProgram, origin: tuple[Any, ...] = (), tile: Any = None) -> None:
        self.jpeg, self.program, self.origin, self.tile = jpeg, program, origin, tile
        self._pixels: Any = None

    def render(self) -> Any:
        """Return the pixels as an array; None if Pillow must decode the image."""
        with self.jpeg.lock:
            if self._pixels is None:
                pixels = self.jpeg.render(self.program)
                self._pixels = None if pixels is None else pixels.numpy()
            return self._pixels

    @property
    def is_unmodified(self) -> bool:
        """True if Pillow decodes the image as fast, because nothing is decoded, cropped, resized or recolored yet."""
        is_part = self.program.filter is not None or self.program.size != self.jpeg.size
        return self._pixels is None and self.program.pixels is None and not is_part

    def to_tensor(self, conversion: TensorConversion, planar: bool) -> Tensor | None:
        """Return the pixels as a normalized tensor; None if Pillow must decode the image. See `convert_image`."""
        with self.jpeg.lock:
            if self._pixels is None:
                return conversion.render(self.jpeg.render, self.program, planar)
            return _convert_pixels(self._pixels, conversion, planar)


class JpegData:
    """A JPEG file in memory. A region of the image can be decoded without the rest.

    Attributes:
        size: Height and width.
        lock: Lock that a thread holds while it decodes this file or converts the file's images to Pillow's class.
    """

    def __init__(self, data: bytearray, source: ImageSource, size: tuple[int, int]) -> None:
        self.data, self.source, self.size, self.lock = data, source, size, threading.RLock()
        self._render_count, self._whole_image = 0, cast("ImageSource | None", None)

    @classmethod
    def read(cls, fp: Any, scan: int, block: int, size: tuple[int, int]) -> JpegData | None:
        """Read a file; return None if Pillow must decode the file.

        Afterwards, the file object has the same position as if Pillow had read the file.

        Args:
            scan: Offset of the first scan's data.
            block: Number of bytes that Pillow reads in one call.
            size: Width and height according to Pillow.
        """
        try:
            data = _read(fp)
            length = len(data)
            end = data.rfind(b"\xff\xd9", scan) + 2
            if end < 2:
                return None
            fp.seek(min(length, -(-end // block) * block))
        except Exception:
            return None  # Pillow raises the same error
        del data[end:]
        source = ImageSource(np.frombuffer(data, np.uint8))
        corner = ImageProgram.of(size[1], size[0], STORED).crop(0, 0, 1, 1)
        if (
            source.size != (size[1], size[0])
            or corner is None
            or not (source.has_one_scan() or _has_one_scan(data, scan))
        ):
            return None
        return None if source.render(corner) is None else cls(data, source, (size[1], size[0]))

    def render(self, program: ImageProgram) -> Tensor | None:
        """Decode the region that the recorded operations need, and apply the operations.

        Return None if Pillow must decode the image.

        If this method is called a second time for the same file, as in multi-crop augmentation, the whole image is
        decoded once and cached. From then on, this process decodes whole images only.
        """
        self._render_count += 1
        _history.needs_whole_images |= self._render_count > 1
        if _history.needs_whole_images and self._whole_image is None:
            pixels = self.source.render(ImageProgram.of(*self.size, STORED))
            self._whole_image = None if pixels is None else ImageSource(pixels.numpy())
        source = self.source if self._whole_image is None else self._whole_image
        return source.render(program)


class _DecodeHistory:
    """A flag of this process: True after the program needed several regions of one image."""

    needs_whole_images = False


_history = _DecodeHistory()
_PILLOW_BYTES = 1 << 26  # Pillow decodes files of at least this size
MAX_EAGER_PIXELS = 1 << 13  # pixels; decoding an image of this size takes no longer than reading its header


def _read(fp: Any) -> bytearray:
    """Return the bytes of a file; no bytes if the file is so large that Pillow must decode it."""
    if not isinstance(fp, (io.BufferedReader, io.BytesIO)):
        fp.seek(0)
        data = bytearray(fp.read(_PILLOW_BYTES))
        return data if len(data) < _PILLOW_BYTES else bytearray()
    length = fp.seek(0, io.SEEK_END)
    fp.seek(0)
    data = bytearray(length if length < _PILLOW_BYTES else 0)
    fp.readinto(data)
    return data


def _has_one_scan(data: bytearray, scan: int) -> bool:
    """Return True if the JPEG data from offset `scan` on contains no markers except restart markers."""
    scan_bytes = np.frombuffer(data, np.uint8)[scan:-2]
    codes = scan_bytes[np.flatnonzero(scan_bytes[:-1] == 0xFF) + 1]
    return bool(len(scan_bytes) and scan_bytes[-1] != 0xFF and ((codes == 0) | (codes - 0xD0 < 8)).all())


class _PixelAccess:
    """Access to single pixels, like the object that Pillow's `load` returns. The first access decodes the image."""

    def __init__(self, image: LazyImage) -> None:
        self._image = image

    def __getitem__(self, xy: Any) -> Any:
        return self._image._decode().load()[xy]

    def __setitem__(self, xy: Any, color: Any) -> None:
        self._image._decode().load()[xy] = color


_FLIPS = (Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.FLIP_TOP_BOTTOM)
_FILTER_NAMES = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
_FILTERS: dict[Any, str] = {None: "bicubic", **{Image.Resampling[name.upper()]: name for name in _FILTER_NAMES}}


def _are_integers(values: Any, count: int) -> bool:
    is_sequence = isinstance(values, (tuple, list)) and len(values) == count
    return is_sequence and all(isinstance(each, (int, np.integer)) for each in values)


_set_class = object.__dict__["__class__"].__set__
_im_property = vars(Image.Image).get("im")


def _get_pillow_im(image: Any) -> Any:
    """Return the value of Pillow's own attribute `im`, for an image that isn't read yet."""
    return vars(image)["im"] if _im_property is None else _im_property.__get__(image)
