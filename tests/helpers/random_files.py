"""Random calls of readers and decoders, on generated files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.helpers import encoded_images as made
from tests.helpers import encoded_video
from tests.helpers.containers import write_tar
from tests.helpers.random_calls import (
    ANY,
    BOOL,
    SAMPLES,
    Call,
    Draw,
    Member,
    chosen,
    constant,
    listed,
    members,
    number,
    one_of,
    pick,
    whole,
)  # fmt: skip

JPEG = made.encoded(made.RGB, "JPEG", quality=90)
TURNED = made.encoded(made.RGB, "JPEG", exif=made.exif(6))
IMAGES = (  # no gray JPEG: as ANY_DATA the real DALI delivers uninitialized memory, also for the following samples
    JPEG, TURNED, JPEG[:700], made.encoded(made.RGB, "PNG"), made.encoded(made.RGBA, "PNG"),
    made.encoded(made.GRAY, "PNG"), made.encoded(made.RGB, "BMP"), made.encoded(made.RGB, "TIFF"),
    made.encoded(made.RGB, "PPM"), made.encoded(made.RGB, "WEBP", lossless=True), b"no image at all",
)  # fmt: skip
COLORS = members("RGB RGB GRAY BGR YCbCr ANY_DATA")
DECODING = {
    "output_type": COLORS,
    "dtype": members("UINT8 UINT16 FLOAT INT16"),
    "adjust_orientation": BOOL,
}
EXTENTS = constant(listed(whole(1, 70), 2))
DECODERS = {
    "decoders.image": DECODING,
    "decoders.image_crop": DECODING
    | {"crop": EXTENTS, "crop_pos_x": number(0, 1), "crop_pos_y": number(0, 1)},
    "decoders.image_slice": DECODING
    | {
        "start": constant(listed(whole(0, 20), 2)),
        "shape": EXTENTS,
        "axes": one_of([0, 1], [1, 0]),
    },
    "peek_image_shape": {"dtype": ANY, "adjust_orientation": BOOL},
}
SHARDS = {
    "num_shards": one_of(1, 2, 3), "shard_id": one_of(0, 0, 1), "pad_last_batch": BOOL, "stick_to_shard": BOOL,
    "skip_cached_images": BOOL, "read_ahead": BOOL, "prefetch_queue_depth": one_of(1, 2, 3),
}  # fmt: skip


def decoder_call(seed: int, folder: Path) -> Call:
    rng = np.random.default_rng(seed)
    name = pick(rng, list(DECODERS))
    first = pick(rng, IMAGES)
    files = [first if rng.random() < 0.6 else pick(rng, IMAGES) for _ in range(SAMPLES)]
    inputs = [([np.frombuffer(file, np.uint8) for file in files], "")]
    return Call(seed, name, inputs, chosen(rng, DECODERS[name]))


def write(folder: Path) -> None:
    """Write the files that `reader_call` reads."""
    rng = np.random.default_rng(1)
    for label in ("a", "B", "c10", "c9", "empty"):
        (folder / "f" / label).mkdir(parents=True)
        for i, end in enumerate(("jpg", "JPEG", "png", "bin", "jpg") if label != "empty" else ()):
            (folder / "f" / label / f"{i}.{end}").write_bytes(rng.bytes(i + 1))
    (folder / "list.txt").write_text("a/0.jpg 3\nc9/4.jpg -1\nB/2.png 0\n")
    (folder / "n").mkdir()
    for i in range(7):
        values = rng.integers(0, 99, (3 + i, 4 + i % 3)).astype(np.float32)
        np.save(folder / "n" / f"{i}.npy", np.asfortranarray(values) if i % 2 else values)
    parts = [
        (f"{i}.{end}", rng.bytes(4 * (i + 1)))
        for i in range(5)
        for end in ("jpg", "cls", "a.b")
        if (i, end) != (2, "cls")
    ]
    write_tar(folder / "w.tar", parts)
    encoded_video.make(folder, "1-vp9.webm", frames=13)
    encoded_video.make(folder, "2-mjpeg.avi", frames=6)


def _sources(folder: Path) -> dict[str, dict[str, Draw]]:
    """Return the arguments of readers; arguments whose names end in ``!`` are always passed."""
    root, region = str(folder / "n"), one_of("pad", "trim_to_shape", "error")
    films = [str(folder / "1-vp9.webm"), str(folder / "2-mjpeg.avi")]
    return {
        "readers.file": {
            "file_root!": one_of(str(folder / "f")), "file_list": one_of(str(folder / "list.txt")), "case_sensitive_filter": BOOL,
            "file_filters": one_of(["*.jpg"], ["*.JPEG", "*.png"], ["[0-1].*"], ["?.b?n"]), "dir_filters": one_of(["c*"], ["a", "B"], ["zz"]),
            "files": one_of(["a/0.jpg", "B/3.bin"]), "labels": one_of([4, 5], [4]),
        },
        "readers.numpy": {
            "file_root!": one_of(root), "file_filter": one_of("*.npy", "[0-3].npy", "x*"), "roi_start": constant(listed(whole(0, 3), 2)),
            "roi_end": constant(listed(whole(1, 7), 2)), "rel_roi_shape": constant(listed(number(0, 1), 2)), "out_of_bounds_policy": region,
            "fill_value": constant(number(0, 9)), "roi_axes": one_of([0, 1], [1, 0]),
        },
        "readers.webdataset": {
            "paths!": one_of(str(folder / "w.tar")), "ext!": one_of(["jpg", "cls"], ["cls", "a.b"], ["jpg;cls"], ["JPG", "zzz"]),
            "missing_component_behavior": one_of("empty", "skip", "error", "bad"), "case_sensitive_extensions": BOOL,
            "dtypes": one_of([Member("INT32")] * 2, [Member("UINT8")]),
        },
        "experimental.readers.video": {
            "filenames!": one_of(films, films[:1], films[1:]), "sequence_length!": one_of(1, 2, 5, 20), "labels": one_of([1], [4, 5]),
            "stride": one_of(1, 2, 3), "step": one_of(1, 2, 5, -1), "pad_mode": one_of("none", "edge", "reflect_101", "symmetric", "x"),
            "enable_frame_num": one_of("none", "scalar", "sequence"), "fill_value": one_of([7], [1, 2, 3]),
        },
    }  # fmt: skip


def reader_call(seed: int, folder: Path) -> Call:
    rng = np.random.default_rng(seed)
    sources = _sources(folder)
    name = pick(rng, list(sources))
    fixed = {key[:-1]: draw.of(rng) for key, draw in sources[name].items() if key.endswith("!")}
    rest = {key: draw for key, draw in sources[name].items() if not key.endswith("!")}
    return Call(
        seed, name, [], fixed | chosen(rng, rest) | chosen(rng, SHARDS), runs=pick(rng, (1, 3, 5))
    )
