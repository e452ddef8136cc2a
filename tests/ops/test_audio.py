"""Audio operators against librosa and the real DALI: decoded samples are bit-identical, spectra agree to 1e-5, resampled audio to 1e-3 of full scale."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from tests.check import PerSample, Result, check, compare, dali, pipeline
from tests.helpers.data import folder
from tests.helpers.encoded_audio import WIDTHS, chunk, encoded, speech, wav
from tests.helpers.inside import per_sample_calls
from tests.helpers.native import both_paths
from torchdali import fn, pipeline_def, types
from torchdali.calls.chunk_function import ChunkFunction
from torchdali.kernels.audio.resample import resample, resampled_length
from torchdali.kernels.audio.spectrum import hann

SIGNAL = torch.from_numpy(speech(4000)[:, 0].astype(np.float32))


@pytest.mark.parametrize("formula", ["slaney", "htk"])
def test_mel_filters_match_librosa(formula):
    librosa = pytest.importorskip("librosa", reason="librosa is not installed")
    spectrum = fn.spectrogram(SIGNAL, window_length=256, window_step=128)
    found = fn.mel_filter_bank(spectrum, sample_rate=16000.0, nfilter=40, mel_formula=formula, freq_low=50.0)
    filters = librosa.filters.mel(sr=16000, n_fft=256, n_mels=40, fmin=50.0, htk=formula == "htk")
    wanted = filters @ spectrum.numpy()
    assert np.allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-6 * wanted.max())


def test_spectra_match_librosa():
    librosa = pytest.importorskip("librosa", reason="librosa is not installed")
    window = np.hanning(256).astype(np.float32)
    found = fn.spectrogram(SIGNAL, window_length=256, window_step=128, window_fn=window.tolist())
    transformed = librosa.stft(SIGNAL.numpy(), n_fft=256, hop_length=128, window=window, pad_mode="reflect")
    wanted = np.abs(transformed) ** 2
    assert np.allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-6 * wanted.max())


@pytest.mark.parametrize("samples", [1, 32, 33, 34, 63, 64, 65])
def test_signals_no_longer_than_a_window_are_mirrored(samples):
    signal = torch.sin(torch.arange(samples, dtype=torch.float32))
    for step in (1, 2, 31, 32):
        found = fn.spectrogram(signal, window_length=64, window_step=step)
        frames = np.pad(signal.numpy(), (32, 32 + 64), "reflect")
        count = samples // step + 1
        windows = np.stack([frames[i * step : i * step + 64] for i in range(count)]) * hann(64)
        wanted = np.abs(np.fft.rfft(windows)).T ** 2
        assert np.allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_coefficients_match_librosa(kind):
    librosa = pytest.importorskip("librosa", reason="librosa is not installed")
    levels = fn.to_decibels(fn.spectrogram(SIGNAL, window_length=256, window_step=128) + 1e-3)
    for orthonormal in {False, kind != 1}:
        found = fn.mfcc(levels, dct_type=kind, n_mfcc=13, normalize=orthonormal, lifter=22.0)
        wanted = librosa.feature.mfcc(
            S=levels.numpy(), dct_type=kind, n_mfcc=13, norm="ortho" if orthonormal else None, lifter=22
        )
        assert np.allclose(found.numpy(), wanted / (1 if orthonormal else 2), rtol=1e-4, atol=1e-2)


def test_an_orthonormal_transform_keeps_lengths():
    data = torch.randn(20, 3)
    for kind in (2, 3, 4):
        found = fn.mfcc(data, dct_type=kind, n_mfcc=20, normalize=True)
        assert torch.allclose(found.norm(dim=0), data.norm(dim=0), rtol=1e-5)


def test_a_resampled_sine_is_a_sine():
    time = torch.arange(8000) / 8000
    sine = torch.sin(2 * torch.pi * 440 * time)
    for rate in (16000, 11025, 44100, 12345.678):
        found = fn.audio_resample(sine, in_rate=8000.0, out_rate=float(rate))
        wanted = torch.sin(2 * torch.pi * 440 * torch.arange(len(found)) / rate)
        inner = slice(200, -200)
        assert (found[inner] - wanted[inner]).abs().max() < 2e-3, rate


@pytest.mark.parametrize("quality", [0.0, 50.0, 100.0])
@pytest.mark.parametrize("scale", [0.4321987, 0.9123456, 1.0523461])
def test_positions_that_do_not_repeat_are_rounded_a_little(scale: float, quality: float) -> None:
    """Compare with float64 resampling at the exact positions."""
    noise = torch.randn(5000, generator=torch.Generator().manual_seed(0))
    length = resampled_length(len(noise), 1.0, scale)
    exact = resample(noise.double(), 1.0, scale, length, quality)
    found = resample(noise, 1.0, scale, length, quality)
    assert (found - exact).abs().max() <= 2e-4 * exact.abs().max()


def test_positions_far_into_a_signal_do_not_drift():
    """A late impulse in a long signal stays at its position, at a ratio that does not repeat."""
    signal = torch.zeros(400_000)
    signal[399_000] = 1.0
    found = fn.audio_resample(signal, scale=1.2345)
    assert int(found.argmax()) == round(399_000 * float(np.float32(1.2345)))


def test_silence_below_minus_100_dB():
    signal = torch.zeros(3000)
    signal[1000:1500] = 1.0
    begin, length = fn.nonsilent_region(signal, window_length=1, cutoff_db=-300.0)
    assert (int(begin), int(length)) == (1000, 500)


def test_the_device_stage_returns_the_same():
    @pipeline_def(batch_size=3, num_threads=2, device_id="cpu")
    def features(device):
        sound = fn.external_source(source=lambda: [SIGNAL.numpy()[: 4000 - 900 * i] for i in range(3)])
        if device == "gpu":
            sound = sound.gpu()
        sound = fn.audio_resample(fn.preemphasis_filter(sound), scale=1.5)
        begin, length = fn.nonsilent_region(sound, window_length=128)
        bank = fn.mel_filter_bank(fn.spectrogram(sound, window_length=256, window_step=128), sample_rate=12000.0)
        return fn.mfcc(fn.to_decibels(bank)), begin, length

    one, other = features("cpu").run(), features("gpu").run()
    for a, b in zip(one, other, strict=True):
        for i in range(3):
            x, y = (torch.as_tensor(np.array(batch.as_cpu().at(i)), dtype=torch.float32) for batch in (a, b))
            assert torch.allclose(x, y, rtol=1e-5, atol=1e-3)


def test_files_to_features_with_bad_files_skipped(tmp_path):
    for i in range(6):
        wav(speech(3000 + i, seed=i)).tofile(tmp_path / f"{i}.wav")
    (tmp_path / "3.wav").write_bytes(b"RIFF1234WAVEnothing")

    @pipeline_def(batch_size=6, num_threads=2, device_id=None, bad_samples="skip")
    def load():
        data, label = fn.readers.file(files=sorted(map(str, tmp_path.iterdir())), labels=list(range(6)))
        sound, rate = fn.decoders.audio(data, downmix=True)
        return fn.spectrogram(sound), rate, label

    pytest.importorskip("soundfile", reason="the extra `audio` is not installed")
    pipe = load()
    spectra, rates, labels = pipe.run()
    assert [int(labels.at(i)[0]) for i in range(len(labels))] == [0, 1, 2, 4, 5]
    assert all(float(rates.at(i)) == 8000 for i in range(5)) and len(spectra) == 5
    pipe.close()


def test_an_error_names_the_file(tmp_path):
    pytest.importorskip("soundfile", reason="the extra `audio` is not installed")
    (tmp_path / "broken.wav").write_bytes(b"RIFF1234WAVEnothing")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def load():
        data, _ = fn.readers.file(files=[str(tmp_path / "broken.wav")])
        return tuple(fn.decoders.audio(data))

    with pytest.raises(RuntimeError, match=r"broken\.wav"):
        load().run()


@pytest.mark.parametrize("dtype", [types.FLOAT, types.INT16, types.INT32])
def test_the_old_name(dtype):
    data = torch.from_numpy(wav(speech(500, 2)))
    with pytest.warns(DeprecationWarning):
        old = fn.audio_decoder(data, dtype=dtype)
    for a, b in zip(old, fn.decoders.audio(data, dtype=dtype), strict=True):
        assert torch.equal(a, b)


def _features(fn_, data, *, spectrum, bank, decibels, coefficients, downmix=True):
    samples, rate = fn_.decoders.audio(data, downmix=downmix)
    made = fn_.spectrogram(samples, **spectrum)
    bank_ = fn_.mel_filter_bank(made, sample_rate=8000.0, **bank)
    levels = fn_.to_decibels(bank_, **decibels)
    return samples, rate, made, levels, fn_.mfcc(levels, **coefficients)


USUAL = {"spectrum": {}, "bank": {"nfilter": 40}, "decibels": {}, "coefficients": {}}
FEATURES = {
    "usual": USUAL,
    "rows": {**USUAL, "spectrum": {"layout": "tf"}, "coefficients": {"axis": 1}},
    "zeros, moduli": {**USUAL, "spectrum": {"reflect_padding": False, "power": 1, "nfft": 600}},
    "own window": {**USUAL, "spectrum": {"window_fn": [0.5] * 96, "window_length": 96, "window_step": 40, "nfft": 128}},
    "not centered": {**USUAL, "spectrum": {"center_windows": False, "window_length": 128, "window_step": 96}},
    "reference": {**USUAL, "decibels": {"reference": 0.3, "multiplier": 20.0, "cutoff_db": -30.0}},
    "other transform": {**USUAL, "coefficients": {"dct_type": 3, "n_mfcc": 50, "lifter": 22.0}},
}


def _runs(files, define, *, size, threads=1, **options):
    """Return the results of each sample, for batches of a size."""
    at = iter(range(0, len(files), size))

    @pipeline_def(batch_size=size, num_threads=threads, device_id=None, **options)
    def pipeline():
        data = fn.external_source(source=lambda: files[(i := next(at)) : i + size], dtype=types.UINT8)
        return tuple(define(data))

    pipe = pipeline()
    found = []
    for _ in range(len(files) // size):
        batches = [batch.samples() if hasattr(batch, "samples") else list(batch) for batch in pipe.run()]
        found += list(zip(*[[torch.as_tensor(sample) for sample in batch] for batch in batches], strict=True))
    pipe.close()
    return found


@pytest.mark.parametrize("name", FEATURES)
def test_features_of_short_audio_do_not_depend_on_the_batch(name):
    lengths = [4000, 700, 128, 3999, 2048, 9000, 130, 2500, 512, 6001, 777]
    lengths.append(128 if name == "not centered" else 1)
    files = [wav(speech(length, seed=i)) for i, length in enumerate(lengths)]
    alone = _runs(files, lambda data: _features(fn, data, **FEATURES[name]), size=1)
    for size, threads in ((12, 1), (12, 3), (6, 1)):
        together = _runs(files, lambda data: _features(fn, data, **FEATURES[name]), size=size, threads=threads)
        for one, other in zip(alone, together, strict=True):
            for a, b in zip(one, other, strict=True):
                assert a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


@pytest.mark.parametrize("options", [{}, {"downmix": True}, {"dtype": types.INT16}])
def test_audio_of_different_formats_is_decoded_in_one_batch(options):
    kinds = [speech(900, seed=1), speech(500, 2, seed=2), speech(300, seed=3)]
    files = [wav(kinds[0]), wav(kinds[1]), wav(kinds[2], 16000, "f32"), wav(kinds[0], width="s24")]
    other_rate, cut = wav(kinds[2], 11025), wav(kinds[0])[:1001]
    files += [other_rate, cut, wav(kinds[0], before=chunk(b"LIST", b"data"))]
    alone = _runs(files, lambda data: fn.decoders.audio(data, **options), size=1)
    for order in ([0, 1, 2, 3], [0] * 4, [1] * 4, [0, 4, 5, 0], [0, 6, 5, 4], [6, 0, 6, 0]):
        together = _runs([files[i] for i in order], lambda data: fn.decoders.audio(data, **options), size=4)
        for i, (samples, rate) in zip(order, together, strict=True):
            assert torch.equal(samples, alone[i][0]) and torch.equal(rate, alone[i][1])


def test_a_bad_short_file_is_named_or_skipped():
    files = [wav(speech(600 + i, seed=i)) for i in range(6)]
    files[4] = files[4][:30]
    define = lambda data: [fn.spectrogram(fn.decoders.audio(data, downmix=True)[0])]  # noqa: E731
    with pytest.raises(Exception, match="sample 4"):
        _runs(files, define, size=6)
    assert len(_runs(files, define, size=6, bad_samples="skip")) == 5


FORMS = {
    "arrays": lambda array: array,
    "read-only": lambda array: np.frombuffer(array.tobytes(), array.dtype),
    "strided": lambda array: np.repeat(array, 2)[::2],
    "tensors": torch.from_numpy,
}


@both_paths
@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_results_of_short_audio_do_not_depend_on_the_form(form, no_copy):
    signals = [speech(200 + i, seed=i).astype(np.float32) for i in range(6)]
    files, sounds = [wav(x).copy() for x in signals], [x[:, 0].copy() for x in signals]
    given = [[FORMS[form](each) for each in column] for column in (files, sounds)]

    @pipeline_def(batch_size=6, num_threads=1, device_id=None)
    def pipeline():
        data, sound = fn.external_source(source=lambda: given, num_outputs=2, no_copy=no_copy)
        return fn.decoders.audio(data, downmix=True)[0], fn.spectrogram(sound, window_length=64), data

    decoded, spectra, data = pipeline().run()
    for i, (file, sound) in enumerate(zip(files, sounds, strict=True)):
        assert torch.equal(decoded.samples()[i], fn.decoders.audio(torch.from_numpy(file), downmix=True)[0])
        assert torch.equal(spectra.samples()[i], fn.spectrogram(torch.from_numpy(sound), window_length=64))
        assert np.array_equal(data.at(i), file)


@both_paths
@pytest.mark.parametrize("no_copy", [False, True])
def test_the_error_names_empty_audio(no_copy):
    files = [wav(speech(600 + i, seed=i)).copy() for i in range(6)]
    files[4] = files[4][:0]

    @pipeline_def(batch_size=6, num_threads=1, device_id=None)
    def pipeline():
        return fn.decoders.audio(fn.external_source(source=lambda: files, no_copy=no_copy))[0]

    with pytest.raises(Exception, match=r"sample 4 (.|\n)*empty"):
        pipeline().run()


@pytest.mark.parametrize("alike", [True, False])
def test_chunks_equal_single_files(alike, monkeypatch):
    files = [wav(speech(300 if alike else 200 + i, seed=i), rate=8000 + i) for i in range(150)]

    def define(data):
        samples, rate = fn.decoders.audio(data, downmix=True)
        return samples, rate, fn.spectrogram(samples, window_length=64, window_step=32)

    alone = _runs(files[:30], define, size=1)
    calls, without_body = [], []
    call = ChunkFunction.__call__
    monkeypatch.setattr(ChunkFunction, "__call__", lambda self, *a, **k: (calls.append(1), call(self, *a, **k))[1])
    per_sample_calls(monkeypatch, lambda inputs: without_body.append(len(inputs[0]) > 1))
    for size, threads in ((150, 1), (150, 3), (75, 2)):
        for one, other in zip(alone, _runs(files, define, size=size, threads=threads), strict=False):
            assert all(map(torch.equal, one, other)) and other[2].is_contiguous()
    assert calls and not any(without_body)


@pytest.mark.parametrize("bad", [0, 5, 64, 69])
def test_a_bad_file_in_a_chunk_is_named_or_skipped(bad):
    files = [wav(speech(200 + i, seed=i)) for i in range(70)]
    alone = _runs(files, lambda data: fn.decoders.audio(data), size=1)
    files[bad] = files[bad][:30]
    with pytest.raises(Exception, match=f"sample {bad} "):
        _runs(files, fn.decoders.audio, size=70)
    found = _runs(files, fn.decoders.audio, size=70, bad_samples="skip")
    for one, other in zip([*alone[:bad], *alone[bad + 1 :]], found, strict=True):
        assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])


@both_paths
def test_short_files_equal_files_read_one_by_one(tmp_path):
    paths = [tmp_path / f"{i}.wav" for i in range(9)]
    for i, path in enumerate(paths):
        path.write_bytes(wav(speech(200 + i, seed=i)).tobytes())
    paths[7].write_bytes(b"")

    @pipeline_def(device_id=None, num_threads=1, bad_samples="skip")
    def pipeline():
        data, label = fn.readers.file(files=list(map(str, paths)), labels=list(range(9)))
        return *fn.decoders.audio(data, downmix=True), data, label

    whole = [batch.samples() for batch in pipeline(batch_size=9).run()]
    assert [int(label) for label in whole[3]] == [0, 1, 2, 3, 4, 5, 6, 8]
    assert [len(sound) for sound in whole[0]] == [200, 201, 202, 203, 204, 205, 206, 208]
    for label, data in zip(whole[3], whole[2], strict=True):
        assert data.numpy().tobytes() == paths[int(label)].read_bytes()


@pytest.mark.thin(5)
@both_paths
@pytest.mark.parametrize("options", [{}, {"downmix": True}, {"dtype": types.INT16}])
@pytest.mark.parametrize("channels", [1, 2])
def test_large_audio_is_decoded_in_one_batch(options, channels):
    """Results have their own memory, and batches that the user holds are not overwritten."""
    sounds = [speech(60000 + 2000 * i, channels, seed=i) for i in range(6)]
    kinds = [wav(sound) for sound in sounds], [encoded(sound) for sound in sounds]
    for files in (kinds[0], kinds[1], [kinds[i % 2][i] for i in range(6)]):
        define = lambda data: fn.decoders.audio(data, **options)  # noqa: E731
        alone = _runs(files, define, size=1)
        for size, threads in ((6, 1), (6, 2), (3, 2), (2, 1)):
            for one, other in zip(alone, _runs(files, define, size=size, threads=threads), strict=True):
                assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])


@both_paths
@pytest.mark.parametrize("frames", [300, 40000, 120000])
def test_the_decoding_thread_reads_the_files(tmp_path, frames):
    """Files are read into reused memory, unless the bytes are outputs, too."""
    sounds = [wav(speech(frames + 100 * i, seed=i)) for i in range(7)]
    paths = [str(tmp_path / f"{i}.wav") for i in range(7)]
    for path, sound in zip(paths, sounds, strict=True):
        sound.tofile(path)

    @pipeline_def(batch_size=4, device_id=None)
    def pipeline(with_bytes):
        data, label = fn.readers.file(files=paths)
        found = fn.decoders.audio(data, downmix=True)[0]
        return (found, label, data) if with_bytes else (found, label)

    expected = [each[0] for each in _runs(sounds, lambda data: fn.decoders.audio(data, downmix=True), size=1)]
    for threads in (1, 2):
        for with_bytes in (False, True):
            pipe = pipeline(with_bytes, num_threads=threads)
            for found, label, *data in [[batch.samples() for batch in pipe.run()] for _ in range(5)]:
                which = [int(each) for each in label]
                assert all(torch.equal(one, expected[i]) for one, i in zip(found, which, strict=True))
                for each in data:
                    assert all(np.array_equal(x, sounds[i]) for x, i in zip(each, which, strict=True))


@pytest.mark.parametrize("bad", [0, 3])
def test_a_bad_large_file_is_named_or_skipped(bad):
    files = [encoded(speech(60000, seed=i)) for i in range(4)]
    files[bad][30000] ^= 8
    with pytest.raises(Exception, match=f"sample {bad} "):
        _runs(files, fn.decoders.audio, size=4)
    assert len(_runs(files, fn.decoders.audio, size=4, bad_samples="skip")) == 3


def test_large_audio_is_decoded_one_by_one():
    files = [wav(speech(60000 + i, seed=i)) for i in range(4)]
    define = lambda data: [fn.spectrogram(fn.decoders.audio(data, downmix=True)[0])]  # noqa: E731
    alone, together = _runs(files, define, size=1), _runs(files * 2, define, size=4)
    for (a,), (b,) in zip(alone * 2, together, strict=True):
        assert torch.equal(a, b)


# --------------------------------------------------------- compared with the real DALI


RANDOM = np.random.default_rng(3)
STEREO, MONO, THREE = speech(500, 2), speech(400, 1, 1), speech(300, 3, 2)
STEREO[0] = [-1, 1]
ASIDE = b"LIST\x03\x00\x00\x00abc\x00"


def both(name, inputs, arguments, layouts=None, **tolerance):
    """Compare the results of a pipeline with DALI's, if `check` would be too strict or too slow."""
    found = pipeline("torchdali", name, inputs, arguments, layouts)
    compare(found, dali(name, inputs, arguments, layouts), **tolerance)


# ---------------------------------------------------------------- decoding


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["FLOAT", "INT16", "INT32"])
@pytest.mark.parametrize("width", WIDTHS)
def test_wav_is_bit_identical(width, dtype):
    files = [
        wav(STEREO, width=width),
        wav(MONO, 16000, width, extended=True),
        wav(THREE, 12347, width, before=ASIDE),
        wav(MONO[:0], 16000, width),
    ]
    for downmix in (False, True):
        arguments = {"dtype": f"types.{dtype}", "downmix": downmix}
        check("decoders.audio", [files], arguments)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("format", "subtype"),
    [("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("OGG", "VORBIS"), ("WAV", "ULAW"), ("WAV", "MS_ADPCM"), ("AIFF", "PCM_16")],
)
def test_formats_of_libsndfile(format, subtype):
    files = [encoded(STEREO, 8000, format, subtype), encoded(MONO, 16000, format, subtype)]
    for dtype in ("FLOAT", "INT16"):
        exact = {} if format != "OGG" else {"level": 1e-6 if dtype == "FLOAT" else 1}
        both("decoders.audio", [files], {"dtype": f"types.{dtype}"}, **exact)


@pytest.mark.parity
@pytest.mark.parametrize("format", ["wav", "flac"])
def test_speech(format):
    files = sorted(folder("audio/librispeech").glob(f"*.{format}"))
    data = [np.fromfile(file, np.uint8) for file in files]
    check("decoders.audio", [data])
    both("decoders.audio", [data], {"sample_rate": 8000.0}, level=1e-3)
    both("decoders.audio", [data], {"sample_rate": PerSample([44100.0] * len(data)), "downmix": True}, level=1e-3)
    both("decoders.audio", [data], {"sample_rate": 14400.0, "dtype": "types.INT16"}, level=33)


@pytest.mark.golden
def test_truncated_wav_is_read_as_far_as_it_goes():
    file = wav(STEREO)
    check("decoders.audio", [[file[:-7], file[:100], file[:44]]])


@pytest.mark.golden
@pytest.mark.parametrize("arguments", [{"dtype": "types.UINT8"}, {"sample_rate": 9000.0, "quality": 101.0}])
def test_refused_arguments(arguments):
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises(RuntimeError):
            pipeline(library, "decoders.audio", [[wav(STEREO)]], arguments)


@pytest.mark.golden
@pytest.mark.parametrize("data", [wav(STEREO)[:30], np.arange(100, dtype=np.uint8), wav(STEREO)[None], np.zeros(0, np.uint8)])
def test_refused_data(data):
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises(RuntimeError):
            pipeline(library, "decoders.audio", [[data]], {})


# ---------------------------------------------------------------- resampling

RATIOS = [
    {"scale": 2.0}, {"scale": 0.5}, {"scale": 1.0}, {"in_rate": 8000.0, "out_rate": 16000.0}, {"scale": 1.5, "quality": 0.0},
    {"scale": 0.75, "quality": 100.0}, {"scale": PerSample([0.5, 1.5])}, {"out_length": 0},
]  # fmt: skip
ODD = [
    {"scale": 1.234567}, {"scale": 0.3}, {"in_rate": 16000.0, "out_rate": 44100.0}, {"in_rate": 44100.0, "out_rate": 16000.0},
    {"in_rate": 12347.0, "out_rate": 16000.0}, {"out_length": 731}, {"scale": 0.87, "quality": 20.0}, {"scale": PerSample([0.91, 1.13])},
]  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize(("channels", "layout"), [(1, "t"), (3, "tc")])
def test_resampling(channels, layout):
    signals = [speech(n, channels, n).astype(np.float32) for n in (900, 3000)]
    signals = [s[:, 0].copy() for s in signals] if layout == "t" else signals
    for arguments in RATIOS:
        check("audio_resample", [signals], arguments, layout, level=1e-4)
    for arguments in ODD:
        both("audio_resample", [signals], arguments, layout, level=1e-3)


TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")


@pytest.mark.golden
@pytest.mark.parametrize("source", TYPES)
def test_resampling_between_types(source):
    signal = speech(60)[:, 0]
    full = 1.0 if source == "float32" else np.iinfo(source).max
    middle = full / 2 if source[0] == "u" else 0.0
    samples = (signal * (full - middle) + middle).astype(source)
    for target in (None, *TYPES):
        kind = target or source
        name = {"float32": "FLOAT"}.get(kind, kind.upper())
        top = 1.0 if kind == "float32" else float(np.iinfo(kind).max)
        arguments = {"scale": 1.5} if target is None else {"scale": 1.5, "dtype": f"types.{name}"}
        both("audio_resample", [[samples]], arguments, level=4e-5 * top + (kind != "float32"))


@pytest.mark.golden
@pytest.mark.parametrize(
    "arguments",
    [{}, {"scale": -1.0}, {"scale": 2.0, "out_length": 3}, {"in_rate": 2.0}, {"in_rate": 0.0, "out_rate": 1.0},
     {"scale": 1.5, "quality": 101.0}, {"scale": 2.0, "dtype": "types.FLOAT64"}, {"out_length": -2}],
)  # fmt: skip
def test_refused_ratios(arguments):
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises(RuntimeError):
            pipeline(library, "audio_resample", [[np.ones(20, np.float32)]], arguments)


# ---------------------------------------------------------------- spectra

SIGNALS = [RANDOM.standard_normal(n).astype(np.float32) for n in (64, 300)]
SPECTRA = [np.abs(RANDOM.standard_normal((65, n))).astype(np.float32) for n in (4, 7)]
WINDOWS = [
    {}, {"layout": "tf"}, {"power": 1}, {"nfft": 32}, {"nfft": 33}, {"window_length": 15}, {"window_fn": [1.0, 2.0] * 8},
    {"window_step": 5}, {"window_step": 40}, {"center_windows": False}, {"center_windows": False, "nfft": 32},
    {"reflect_padding": False}, {"window_length": 400}, {"window_length": 400, "reflect_padding": False},
]  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize("layout", ["t", None])
def test_spectrogram(layout):
    for arguments in WINDOWS:
        given = {"window_length": 16, "window_step": 8, **arguments}
        check("spectrogram", [SIGNALS], given, layout, relative=1e-5, level=1e-5)


@pytest.mark.golden
@pytest.mark.parametrize("shape", [(1,), (5,), (1, 64), (64, 1), (1, 1, 64)])
def test_spectrogram_of_other_shapes(shape):
    for reflected in (False, True):
        arguments = {"window_length": 16, "window_step": 8, "reflect_padding": reflected}
        check("spectrogram", [[SIGNALS[0][: np.prod(shape)].reshape(shape)]], arguments, relative=1e-5, level=1e-5)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("shape", "arguments"),
    [((64,), {"power": 3}), ((64,), {"nfft": 8}), ((64,), {"window_fn": [1.0] * 9}), ((64,), {"window_step": 0}),
     ((64,), {"window_length": -1}), ((64,), {"window_length": 100, "center_windows": False}), ((64,), {"layout": "x"}),
     ((0,), {}), ((2, 32), {}), ((64,), {"nfft": 0})],
)  # fmt: skip
def test_refused_windows(shape, arguments):
    given = {"window_length": 16, "window_step": 8, **arguments}
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises(RuntimeError):
            pipeline(library, "spectrogram", [[np.ones(shape, np.float32)]], given)


@pytest.mark.golden
@pytest.mark.parametrize(("samples", "layout"), [(SIGNALS, "t"), (SPECTRA, "ft"), (SPECTRA, None)])
def test_power_spectrum(samples, layout):
    ways = [{}, {"power": 1}, {"nfft": 16}, {"nfft": 100}, {"nfft": -3}, {"axis": 0}, {"axis": -1}]
    for arguments in ways + [{"axis": 1}] * (samples[0].ndim == 2):
        check("power_spectrum", [samples], arguments, layout, relative=1e-5, level=1e-4)


BANKS = [
    {"nfilter": 20}, {"nfilter": 20, "sample_rate": 8000.0}, {"nfilter": 9, "freq_low": 100.0, "freq_high": 3000.0, "sample_rate": 8000.0},
    {"mel_formula": "htk", "sample_rate": 8000.0, "nfilter": 30}, {"normalize": False, "nfilter": 5}, {"nfilter": 40, "sample_rate": 16000.0},
    {"freq_high": 7000.0, "sample_rate": 8000.0, "nfilter": 4},
]  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize("layout", ["ft", "tf", None])
def test_mel_filter_bank(layout):
    samples = [s.T.copy() for s in SPECTRA] if layout == "tf" else SPECTRA
    for arguments in BANKS:
        check("mel_filter_bank", [samples], arguments, layout, relative=1e-5, level=1e-7)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("samples", "layout"),
    [(SPECTRA[0][:, 0], "f"), (np.stack([SPECTRA[0]] * 2), "cft"), (np.stack([SPECTRA[0]] * 2), None), (SPECTRA[0][:1], None),
     (SPECTRA[0][:, :0], "ft")],
)  # fmt: skip
def test_mel_filter_bank_of_other_shapes(samples, layout):
    check("mel_filter_bank", [[np.ascontiguousarray(samples)]], {"nfilter": 3}, layout, relative=1e-5, level=1e-7)


TRANSFORMS = [
    {}, {"n_mfcc": 3}, {"n_mfcc": 200}, {"axis": 1}, {"normalize": True}, {"lifter": 22.0}, {"lifter": -3.0},
    {"dct_type": 1}, {"dct_type": 3}, {"dct_type": 4}, {"dct_type": 3, "normalize": True}, {"dct_type": 4, "normalize": True},
]  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize("layout", ["ft", "tf", None])
def test_mfcc(layout):
    for arguments in TRANSFORMS:
        check("mfcc", [SPECTRA], arguments, layout, relative=1e-4, level=1e-4)


REFUSED = [
    ("mel_filter_bank", {"nfilter": 0}, "ft"), ("mel_filter_bank", {"freq_low": -1.0}, "ft"), ("mel_filter_bank", {"mel_formula": "x"}, "ft"),
    ("mel_filter_bank", {"sample_rate": 0.0}, "ft"), ("mel_filter_bank", {"freq_low": 3000.0, "freq_high": 2000.0}, "ft"),
    ("mel_filter_bank", {}, "ct"), ("mfcc", {"n_mfcc": 0}, "ft"), ("mfcc", {"axis": 2}, "ft"), ("mfcc", {"axis": -1}, "ft"),
    ("mfcc", {"dct_type": 5}, "ft"), ("mfcc", {"dct_type": 1, "normalize": True}, "ft"), ("power_spectrum", {"axis": 2}, "ft"),
    ("power_spectrum", {"power": 3}, "ft"), ("to_decibels", {"reference": 0.0}, "ft"), ("preemphasis_filter", {"border": "x"}, "ft"),
    ("preemphasis_filter", {"dtype": "types.FLOAT16"}, "ft"), ("nonsilent_region", {}, "ft"),
]  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize(("name", "arguments", "layout"), REFUSED)
def test_refused(name, arguments, layout):
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises(RuntimeError):
            pipeline(library, name, [SPECTRA], arguments, layout)


@pytest.mark.golden
@pytest.mark.parametrize("name", ["spectrogram", "mel_filter_bank", "mfcc", "to_decibels", "power_spectrum"])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_refused_types(name, dtype):
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises(RuntimeError):
            pipeline(library, name, [[np.ones((9, 4), dtype)]], {})


# ---------------------------------------------------------------- levels

LEVELS = [{}, {"multiplier": 20.0}, {"reference": 2.0}, {"reference": -1.0}, {"cutoff_db": -10.0}, {"cutoff_db": 5.0}, {"multiplier": -10.0}]
EXTREMES = [SIGNALS[0], -np.abs(SIGNALS[0]), SIGNALS[0] * 0, np.float32([1, np.nan, np.inf, 2]), SIGNALS[0][:0]]


@pytest.mark.golden
def test_to_decibels():
    for layout, arguments in itertools.product(("ft", None), LEVELS):
        check("to_decibels", [SPECTRA], arguments, layout, relative=1e-5, level=1e-5)
    for sample, arguments in itertools.product(EXTREMES, ({}, {"reference": 1.0})):
        check("to_decibels", [[sample]], arguments, relative=1e-5, level=1e-5)


STEP = np.concatenate([np.zeros(500), np.full(300, 0.5), np.zeros(400)]).astype(np.float32)
NOISE = np.concatenate([RANDOM.standard_normal(n) * s for n, s in ((3000, 1e-3), (9000, 1), (4000, 1e-4))]).astype(np.float32)


@pytest.mark.golden
def test_nonsilent_region():
    for arguments in (
        {}, {"window_length": 1}, {"window_length": 100, "reset_interval": 400}, {"window_length": 2000, "reset_interval": 4000},
        {"window_length": 128, "cutoff_db": 10.0}, {"window_length": 128, "reference_power": 1.0}, {"window_length": 16, "cutoff_db": -30.0},
        {"window_length": 10, "cutoff_db": -3.0, "reset_interval": 100},
    ):  # fmt: skip
        for layout in ("t", None):
            check("nonsilent_region", [[STEP, NOISE]], arguments, layout)
    for silent in ({}, {"reference_power": 1.0}):
        check("nonsilent_region", [[STEP * 0]], silent)


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"])
def test_nonsilent_region_of_integers(dtype):
    check("nonsilent_region", [[(STEP * 100).astype(dtype)]], {"window_length": 128})


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int64", "float32", "float64"])
def test_preemphasis_filter(dtype):
    samples = [np.abs(s * 30).astype(dtype) for s in SIGNALS]
    for arguments in (
        {}, {"border": "zero"}, {"border": "reflect"}, {"preemph_coeff": 0.0}, {"preemph_coeff": PerSample([0.5, 0.1])},
        {"dtype": "types.INT16"}, {"dtype": "types.UINT8"}, {"dtype": "types.FLOAT64"}, {"dtype": "types.INT64", "border": "zero"},
    ):  # fmt: skip
        whole = arguments.get("dtype", "types.FLOAT") not in ("types.FLOAT", "types.FLOAT64")
        check("preemphasis_filter", [samples], arguments, "t", relative=1e-6, level=1 if whole else 2e-5, share=1.0)
    check("preemphasis_filter", [[s.reshape(4, -1) for s in samples]], {}, relative=1e-6, level=2e-5)


@pytest.mark.parity
def test_speech_to_mfcc():
    """Compare the whole pipeline, operator by operator on DALI's previous results, and at the end."""
    files = sorted(folder("audio/librispeech").glob("*.wav"))[:3]
    samples = [r[:, 0].copy() for r in dali("decoders.audio", [[np.fromfile(f, np.uint8) for f in files]], {})[0].samples]
    for name, arguments, tolerance in (
        ("preemphasis_filter", {}, 0.0),
        ("spectrogram", {"window_length": 400, "window_step": 160, "nfft": 512}, 1e-5),
        ("mel_filter_bank", {"sample_rate": 16000.0, "nfilter": 80}, 1e-5),
        ("to_decibels", {"cutoff_db": -80.0}, 1e-5),
        ("mfcc", {"n_mfcc": 13, "lifter": 22.0}, 1e-4),
    ):
        wanted = dali(name, [samples], arguments)
        top = max(np.abs(sample).max() for sample in wanted[0].samples)
        compare(pipeline("torchdali", name, [samples], arguments), wanted, relative=tolerance, level=1e-6 * top)
        samples = wanted[0].samples
    assert isinstance(wanted[0], Result)
