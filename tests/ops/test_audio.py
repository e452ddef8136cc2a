"""Operators on audio in ways that the parity tests leave out: librosa's values, pipelines, errors, devices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.helpers.encoded_audio import speech, wav
from torchdali import fn, pipeline_def, types

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
