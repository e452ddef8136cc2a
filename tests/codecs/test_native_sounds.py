"""WAV files, resampling and mel spectra on the native path: the values of Python's way, and what it refuses."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.encoded_audio import WIDTHS, Array, chunk, encoded, speech, wav
from tests.helpers.native import needs_native, switched_off
from torchdali.codecs._native import read_files
from torchdali.codecs._native_wav import decode_together
from torchdali.codecs._wav import parse
from torchdali.codecs.audio import decode, decode_several
from torchdali.kernels import native
from torchdali.kernels.audio import mel
from torchdali.kernels.audio import resample as module
from torchdali.kernels.audio.mel import apply_filters, mel_filters
from torchdali.kernels.audio.resample import resample, resampled_length
from torchdali.kernels.memory import fresh

pytestmark = needs_native

INTEGERS = [width for width, (kind, _) in WIDTHS.items() if kind == 1]


def tensors(files: list[Array]) -> list[Tensor]:
    return [torch.from_numpy(file) for file in files]


@pytest.mark.parametrize("width", INTEGERS)
@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("downmix", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.int32])
def test_samples_are_those_of_one_file(width: str, channels: int, downmix: bool, dtype: torch.dtype) -> None:
    files = tensors([
        wav(speech(frames, channels, seed=frames), rate, width, extended=extended, before=before)
        for frames, rate, extended, before in (
            (201, 8000, False, b""), (1, 44100, True, b""), (64, 10**8, False, chunk(b"LIST", b"odd"))
        )
    ])  # fmt: skip
    found = decode_together(files, downmix, dtype, fresh)
    if downmix and channels > 1 and dtype != torch.float32:
        assert found is None
        return
    assert found is not None and found[2] == [8000, 44100, 10**8]
    with switched_off():
        alone = [decode(file, 0.0, downmix, dtype)[0] for file in files]
    assert found[1] == [len(each) for each in alone]
    assert found[0].dtype == dtype and torch.equal(found[0], torch.cat(alone))


def test_arrays_are_read_as_tensors_are() -> None:
    files = [wav(speech(frames), width="s16").copy() for frames in (201, 1, 64)]
    found, wanted = (decode_together(each, True, torch.float32, fresh) for each in (files, tensors(files)))
    assert found is not None and wanted is not None
    assert torch.equal(found[0], wanted[0]) and found[1:] == wanted[1:]
    for others in ([*files, files[0][:0]], [file[None] for file in files], [file.view(np.int8) for file in files]):
        assert decode_together(others, True, torch.float32, fresh) is None


def test_extremes() -> None:
    words = np.array([-32768, -32767, -1, 0, 1, 32767], "<i2")
    data = np.frombuffer(wav(np.zeros((6, 1))).tobytes()[:-12] + words.tobytes(), np.uint8).copy()
    found = decode_together(tensors([data]), True, torch.float32, fresh)
    assert found is not None and found[0].tolist() == [w / 32768 for w in words.tolist()]


def test_what_it_refuses_is_done_the_other_way() -> None:
    usual, stereo = wav(speech(90)), wav(speech(90, 2))
    for other in (wav(speech(90), width="f32"), wav(speech(90), width="f64"), usual[:30], stereo, usual[:0]):
        assert decode_together(tensors([usual, other]), False, torch.float32, fresh) is None
    assert decode_together([torch.from_numpy(usual), torch.from_numpy(stereo)[::2]], False, torch.float32, fresh) is None
    assert decode_together([torch.from_numpy(usual)[None]], False, torch.float32, fresh) is None
    both = decode_several(tensors([usual, wav(speech(90), width="s24")]), False, torch.float32, fresh)
    assert both is not None and both[1] == [90, 90]
    with switched_off():
        assert decode_together(tensors([usual]), False, torch.float32, fresh) is None


def test_headers_are_read_as_python_reads_them() -> None:
    rng = np.random.default_rng(5)
    kinds = [wav(speech(40, 1 + i % 3), width=width, extended=i % 2 == 0, before=chunk(b"fact", b"12345"[: i % 6]))
             for i, width in enumerate(WIDTHS)]  # fmt: skip
    hard = [0, 1, 2, 3, 8, 16, 24, 32, 127, 128, 254, 255]
    outcomes = {True: 0, False: 0}
    for i in range(6000):
        data = kinds[i % len(kinds)].copy()
        for at in rng.integers(0, 90, rng.integers(0, 4)):
            data[at] = rng.choice(hard)
        data = data[: rng.integers(0, len(data) + 1)] if rng.random() < 0.3 else data
        header = parse(data)
        found = decode_together(tensors([data]), False, torch.int32, fresh)
        outcomes[found is not None] += 1
        assert (found is not None) == (header is not None and not header.floating)
        if found is not None and header is not None:
            assert found[2] == [header.rate]
            assert np.array_equal(found[0].numpy(), header.read(np.dtype(np.int32)))
    assert min(outcomes.values()) > 1000


def test_a_header_that_lies() -> None:
    file = wav(speech(50))
    file[40:44] = np.frombuffer(struct.pack("<I", 0xFFFFFFFF), np.uint8)
    found = decode_together(tensors([file, file[:45], file[:44]]), False, torch.float32, fresh)
    assert found is not None and found[1] == [50, 0, 0]


@pytest.mark.parametrize("quality", [0.0, 25.0, 50.0, 75.0, 100.0])
@pytest.mark.parametrize("scale", [0.013, 0.5, 0.8765, 1.0, 1.2345678, 2.0, 31.7])
def test_resampling_is_that_of_torch(quality: float, scale: float) -> None:
    """Against the exact positions, at which float64 is resampled."""
    for shape in ((1,), (3,), (40,), (900,), (900, 1), (500, 3)):
        x = torch.from_numpy(np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32))
        length = resampled_length(len(x), 1.0, scale)
        found = resample(x, 1.0, scale, length, quality)
        exact = resample(x.double(), 1.0, scale, length, quality)
        assert found.shape == (length, *shape[1:]) and found.dtype == torch.float32
        assert (found - exact).abs().max() < 1.5e-6


def test_resampling_is_the_same_on_all_levels_and_for_each_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.from_numpy(speech(3000, 2).astype(np.float32))
    best = [resample(x, 7.0, 5.3, 2000, quality) for quality in (0.0, 20.0, 50.0, 90.0)]
    library = native.library()
    assert library is not None
    for level in range(library.level + 1):
        monkeypatch.setattr(module, "library", lambda level=level: library._replace(level=level))
        for quality, expected in zip((0.0, 20.0, 50.0, 90.0), best, strict=True):
            assert torch.equal(resample(x, 7.0, 5.3, 2000, quality), expected)
            assert torch.equal(resample(x.t()[1], 7.0, 5.3, 2000, quality), expected[:, 1])


def test_what_is_not_a_number_stays_within_the_window() -> None:
    for quality, half in ((0.0, 3), (50.0, 16)):
        x = torch.zeros(200)
        x[100] = torch.nan
        found = resample(x, 1.0, 0.99, 198, quality).isnan().nonzero().flatten()
        assert 99 - half <= found.min() and found.max() <= 99 + half


def test_small_files_are_read_in_one_call(tmp_path: Path) -> None:
    contents = [b"a", b"RIFF" * 20, encoded(speech(30), format="WAV").tobytes(), bytes(70000)]
    paths = [str(tmp_path / f"{i} \N{SNOWMAN}") for i in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        Path(path).write_bytes(content)
    found = read_files(paths)
    assert found is not None and [each.tobytes() for each in found] == contents
    again = read_files(paths[::-1])
    assert again is not None and found[1].tobytes() == contents[1]
    (tmp_path / "none").write_bytes(b"")
    (tmp_path / "large").write_bytes(bytes(1 << 20))
    for wrong in ("none", "large", "absent", "", "a\0b"):
        assert read_files([paths[0], str(tmp_path / wrong)]) is None
    with switched_off():
        assert read_files(paths) is None


@pytest.mark.parametrize(("bins", "filters"), [(257, 80), (1025, 128), (33, 16), (65, 10), (129, 300)])
@pytest.mark.parametrize("axis", [0, 1])
def test_mel_spectra_are_those_of_the_matrix(bins: int, filters: int, axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bank = mel_filters(bins, filters, 16000.0, 100.0, 7000.0, "slaney", True, torch.device("cpu"))
    library = native.library()
    assert library is not None
    for rows in (1, 2, 50):
        spectra = torch.from_numpy(np.random.default_rng(3).uniform(0, 9, (rows, bins)).astype(np.float32))
        found = []
        for level in range(library.level + 1):
            monkeypatch.setattr(mel, "library", lambda level=level: library._replace(level=level))
            found.append(apply_filters(spectra if axis else spectra.t(), bank, axis))
        exact = spectra.double() @ bank.double().t()
        assert all(torch.equal(each, found[0]) for each in found)
        assert found[0].shape == ((rows, filters) if axis else (filters, rows))
        assert torch.allclose((found[0] if axis else found[0].t()).double(), exact, rtol=1e-6, atol=1e-12)


def test_what_the_bands_leave_to_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    bank = mel_filters(257, 40, 16000.0, 0.0, 8000.0, "htk", False, cpu)
    assert mel._bands(bank) is not None and mel._bands(bank) is mel._bands(bank)
    assert mel._bands(mel_filters(7, 3, 16000.0, 0.0, 8000.0, "htk", False, cpu)) is None
    assert mel._bands(torch.ones(20, 80)) is None
    calls: list[Tensor] = []
    matrix = mel._applied

    def counted(x: Tensor, filters: Tensor, axis: int) -> Tensor:
        calls.append(x)
        return matrix(x, filters, axis)

    monkeypatch.setattr(mel, "_applied", counted)
    spectra = torch.rand(257, 30)
    for x, axis in ((spectra, 0), (spectra.t().double(), 1), (spectra[None], 1), (spectra[:, 0], 0)):
        count = len(calls)
        assert apply_filters(x, bank.to(x.dtype), axis).shape[axis] == 40
        assert len(calls) == count + 1
    apply_filters(spectra.t().contiguous(), bank, 1)
    assert len(calls) == 4
    x = spectra.t().contiguous().requires_grad_()
    assert apply_filters(x, bank, 1).requires_grad and len(calls) == 5
