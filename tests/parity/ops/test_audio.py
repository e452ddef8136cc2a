"""Audio against the real DALI: decoded samples to the bit, spectra to 1e-5, resampling to 1e-3 of full scale."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.check import PerSample, Result, check, compare, dali, pipeline
from tests.helpers.data import folder
from tests.helpers.encoded_audio import WIDTHS, encoded, speech, wav

pytestmark = pytest.mark.golden

RANDOM = np.random.default_rng(3)
STEREO, MONO, THREE = speech(500, 2), speech(400, 1, 1), speech(300, 3, 2)
STEREO[0] = [-1, 1]
ASIDE = b"LIST\x03\x00\x00\x00abc\x00"


def both(name, inputs, arguments, layouts=None, **tolerance):
    """Compare the results of a pipeline with DALI's, where `check` would count them as too far or too slow."""
    found = pipeline("torchdali", name, inputs, arguments, layouts)
    compare(found, dali(name, inputs, arguments, layouts), **tolerance)


# ---------------------------------------------------------------- decoding


@pytest.mark.parametrize("dtype", ["FLOAT", "INT16", "INT32"])
@pytest.mark.parametrize("width", WIDTHS)
def test_wav_to_the_bit(width, dtype):
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


def test_truncated_wav_is_read_as_far_as_it_goes():
    file = wav(STEREO)
    check("decoders.audio", [[file[:-7], file[:100], file[:44]]])


@pytest.mark.parametrize("arguments", [{"dtype": "types.UINT8"}, {"sample_rate": 9000.0, "quality": 101.0}])
def test_refused_arguments(arguments):
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises(RuntimeError):
            pipeline(library, "decoders.audio", [[wav(STEREO)]], arguments)


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


@pytest.mark.parametrize(("channels", "layout"), [(1, "t"), (3, "tc")])
def test_resampling(channels, layout):
    signals = [speech(n, channels, n).astype(np.float32) for n in (900, 3000)]
    signals = [s[:, 0].copy() for s in signals] if layout == "t" else signals
    for arguments in RATIOS:
        check("audio_resample", [signals], arguments, layout, level=1e-4)
    for arguments in ODD:
        both("audio_resample", [signals], arguments, layout, level=1e-3)


TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")


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


@pytest.mark.parametrize("layout", ["t", None])
def test_spectrogram(layout):
    for arguments in WINDOWS:
        given = {"window_length": 16, "window_step": 8, **arguments}
        check("spectrogram", [SIGNALS], given, layout, relative=1e-5, level=1e-5)


@pytest.mark.parametrize("shape", [(1,), (5,), (1, 64), (64, 1), (1, 1, 64)])
def test_spectrogram_of_other_shapes(shape):
    for reflected in (False, True):
        arguments = {"window_length": 16, "window_step": 8, "reflect_padding": reflected}
        check("spectrogram", [[SIGNALS[0][: np.prod(shape)].reshape(shape)]], arguments, relative=1e-5, level=1e-5)


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


@pytest.mark.parametrize("layout", ["ft", "tf", None])
def test_mel_filter_bank(layout):
    samples = [s.T.copy() for s in SPECTRA] if layout == "tf" else SPECTRA
    for arguments in BANKS:
        check("mel_filter_bank", [samples], arguments, layout, relative=1e-5, level=1e-7)


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


@pytest.mark.parametrize(("name", "arguments", "layout"), REFUSED)
def test_refused(name, arguments, layout):
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises(RuntimeError):
            pipeline(library, name, [SPECTRA], arguments, layout)


@pytest.mark.parametrize("name", ["spectrogram", "mel_filter_bank", "mfcc", "to_decibels", "power_spectrum"])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_refused_types(name, dtype):
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises(RuntimeError):
            pipeline(library, name, [[np.ones((9, 4), dtype)]], {})


# ---------------------------------------------------------------- levels

LEVELS = [{}, {"multiplier": 20.0}, {"reference": 2.0}, {"reference": -1.0}, {"cutoff_db": -10.0}, {"cutoff_db": 5.0}, {"multiplier": -10.0}]
EXTREMES = [SIGNALS[0], -np.abs(SIGNALS[0]), SIGNALS[0] * 0, np.float32([1, np.nan, np.inf, 2]), SIGNALS[0][:0]]


def test_to_decibels():
    for layout, arguments in itertools.product(("ft", None), LEVELS):
        check("to_decibels", [SPECTRA], arguments, layout, relative=1e-5, level=1e-5)
    for sample, arguments in itertools.product(EXTREMES, ({}, {"reference": 1.0})):
        check("to_decibels", [[sample]], arguments, relative=1e-5, level=1e-5)


STEP = np.concatenate([np.zeros(500), np.full(300, 0.5), np.zeros(400)]).astype(np.float32)
NOISE = np.concatenate([RANDOM.standard_normal(n) * s for n, s in ((3000, 1e-3), (9000, 1), (4000, 1e-4))]).astype(np.float32)


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


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"])
def test_nonsilent_region_of_integers(dtype):
    check("nonsilent_region", [[(STEP * 100).astype(dtype)]], {"window_length": 128})


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
    """The whole way, operator by operator on DALI's own results before it, and at the end."""
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
