"""Operators on audio in ways that the parity tests leave out: librosa's values, pipelines, errors, devices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.helpers.encoded_audio import chunk, encoded, speech, wav
from tests.helpers.native import both_ways
from torchdali import fn, pipeline_def, types
from torchdali.calls.chunk_function import ChunkFunction
from torchdali.kernels.audio.resample import resample, resampled_length
from torchdali.kernels.audio.spectrum import hann

SIGNAL = torch.from_numpy(speech(4000)[:, 0].astype(np.float32))


@pytest.mark.parametrize("formula", ["slaney", "htk"])
def test_mel_filters_are_librosas(formula):
    librosa = pytest.importorskip("librosa", reason="librosa is not installed")
    spectrum = fn.spectrogram(SIGNAL, window_length=256, window_step=128)
    found = fn.mel_filter_bank(spectrum, sample_rate=16000.0, nfilter=40, mel_formula=formula, freq_low=50.0)
    filters = librosa.filters.mel(sr=16000, n_fft=256, n_mels=40, fmin=50.0, htk=formula == "htk")
    wanted = filters @ spectrum.numpy()
    assert np.allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-6 * wanted.max())


def test_spectra_are_librosas():
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
def test_coefficients_are_librosas(kind):
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


def test_a_sine_stays_one_at_another_rate():
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
    """Against the exact positions, at which float64 is resampled."""
    noise = torch.randn(5000, generator=torch.Generator().manual_seed(0))
    length = resampled_length(len(noise), 1.0, scale)
    exact = resample(noise.double(), 1.0, scale, length, quality)
    found = resample(noise, 1.0, scale, length, quality)
    assert (found - exact).abs().max() <= 2e-4 * exact.abs().max()



def test_positions_far_into_a_signal_do_not_drift():
    """An impulse late in a long signal arrives where it belongs, at a ratio that does not repeat."""
    signal = torch.zeros(400_000)
    signal[399_000] = 1.0
    found = fn.audio_resample(signal, scale=1.2345)
    assert int(found.argmax()) == round(399_000 * float(np.float32(1.2345)))


def test_silence_below_minus_100_dB_is_found_by_what_sounds():
    signal = torch.zeros(3000)
    signal[1000:1500] = 1.0
    begin, length = fn.nonsilent_region(signal, window_length=1, cutoff_db=-300.0)
    assert (int(begin), int(length)) == (1000, 500)


def test_the_device_stage_gives_the_same():
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


def test_files_to_features_with_bad_ones_left_out(tmp_path):
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
    """Return the results of each sample, of batches of a size."""
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
def test_short_sounds_have_the_same_features_in_any_company(name):
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
def test_sounds_of_different_kinds_are_decoded_in_one_batch(options):
    kinds = [speech(900, seed=1), speech(500, 2, seed=2), speech(300, seed=3)]
    files = [wav(kinds[0]), wav(kinds[1]), wav(kinds[2], 16000, "f32"), wav(kinds[0], width="s24")]
    other_rate, cut = wav(kinds[2], 11025), wav(kinds[0])[:1001]
    files += [other_rate, cut, wav(kinds[0], before=chunk(b"LIST", b"data"))]
    alone = _runs(files, lambda data: fn.decoders.audio(data, **options), size=1)
    for order in ([0, 1, 2, 3], [0] * 4, [1] * 4, [0, 4, 5, 0], [0, 6, 5, 4], [6, 0, 6, 0]):
        together = _runs([files[i] for i in order], lambda data: fn.decoders.audio(data, **options), size=4)
        for i, (samples, rate) in zip(order, together, strict=True):
            assert torch.equal(samples, alone[i][0]) and torch.equal(rate, alone[i][1])


def test_a_bad_short_sound_is_named_or_left_out():
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


@both_ways
@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_short_sounds_are_the_same_in_any_form(form, no_copy):
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


@both_ways
@pytest.mark.parametrize("no_copy", [False, True])
def test_an_empty_sound_is_named(no_copy):
    files = [wav(speech(600 + i, seed=i)).copy() for i in range(6)]
    files[4] = files[4][:0]

    @pipeline_def(batch_size=6, num_threads=1, device_id=None)
    def pipeline():
        return fn.decoders.audio(fn.external_source(source=lambda: files, no_copy=no_copy))[0]

    with pytest.raises(Exception, match=r"sample 4 (.|\n)*empty"):
        pipeline().run()


@pytest.mark.parametrize("alike", [True, False])
def test_chunks_deliver_what_single_sounds_do(alike, monkeypatch):
    files = [wav(speech(300 if alike else 200 + i, seed=i), rate=8000 + i) for i in range(150)]

    def define(data):
        samples, rate = fn.decoders.audio(data, downmix=True)
        return samples, rate, fn.spectrogram(samples, window_length=64, window_step=32)

    alone = _runs(files[:30], define, size=1)
    calls, without_body = [], []
    call, one_by_one = ChunkFunction.__call__, ChunkFunction._in_turn
    monkeypatch.setattr(ChunkFunction, "__call__", lambda self, *a, **k: (calls.append(1), call(self, *a, **k))[1])
    monkeypatch.setattr(
        ChunkFunction, "_in_turn", lambda self, *a: (without_body.append(len(a[0][0]) > 1), one_by_one(self, *a))[1]
    )
    for size, threads in ((150, 1), (150, 3), (75, 2)):
        for one, other in zip(alone, _runs(files, define, size=size, threads=threads), strict=False):
            assert all(map(torch.equal, one, other)) and other[2].is_contiguous()
    assert calls and not any(without_body)


@pytest.mark.parametrize("bad", [0, 5, 64, 69])
def test_a_bad_sound_among_chunks_is_named_or_left_out(bad):
    files = [wav(speech(200 + i, seed=i)) for i in range(70)]
    alone = _runs(files, lambda data: fn.decoders.audio(data), size=1)
    files[bad] = files[bad][:30]
    with pytest.raises(Exception, match=f"sample {bad} "):
        _runs(files, fn.decoders.audio, size=70)
    found = _runs(files, fn.decoders.audio, size=70, bad_samples="skip")
    for one, other in zip([*alone[:bad], *alone[bad + 1 :]], found, strict=True):
        assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])


@both_ways
def test_short_files_are_those_that_one_by_one_are_read(tmp_path):
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


@both_ways
@pytest.mark.parametrize("options", [{}, {"downmix": True}, {"dtype": types.INT16}])
@pytest.mark.parametrize("channels", [1, 2])
def test_large_sounds_are_decoded_in_one_batch(options, channels):
    """In memory of its own, of which a batch that the user keeps is not written to again."""
    sounds = [speech(60000 + 2000 * i, channels, seed=i) for i in range(6)]
    kinds = [wav(sound) for sound in sounds], [encoded(sound) for sound in sounds]
    for files in (kinds[0], kinds[1], [kinds[i % 2][i] for i in range(6)]):
        define = lambda data: fn.decoders.audio(data, **options)  # noqa: E731
        alone = _runs(files, define, size=1)
        for size, threads in ((6, 1), (6, 2), (3, 2), (2, 1)):
            for one, other in zip(alone, _runs(files, define, size=size, threads=threads), strict=True):
                assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])


@both_ways
@pytest.mark.parametrize("frames", [300, 40000, 120000])
def test_files_are_read_where_a_bundle_is_decoded(tmp_path, frames):
    """Into memory that is used again, unless the bytes are delivered as well."""
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
def test_a_bad_large_sound_is_named_or_left_out(bad):
    files = [encoded(speech(60000, seed=i)) for i in range(4)]
    files[bad][30000] ^= 8
    with pytest.raises(Exception, match=f"sample {bad} "):
        _runs(files, fn.decoders.audio, size=4)
    assert len(_runs(files, fn.decoders.audio, size=4, bad_samples="skip")) == 3


def test_large_sounds_are_done_one_by_one():
    files = [wav(speech(60000 + i, seed=i)) for i in range(4)]
    define = lambda data: [fn.spectrogram(fn.decoders.audio(data, downmix=True)[0])]  # noqa: E731
    alone, together = _runs(files, define, size=1), _runs(files * 2, define, size=4)
    for (a,), (b,) in zip(alone * 2, together, strict=True):
        assert torch.equal(a, b)
