"""Audio: decoding, resampling, spectrograms, mel filters, cepstra, silence."""

import sys

import numpy as np
from nvidia.dali import fn, pipeline_def, types

data, target = sys.argv[1:]
results = {}


@pipeline_def(batch_size=2, num_threads=2, device_id=None)
def features():
    encoded, _ = fn.readers.file(files=[f"{data}/sounds/{i}.wav" for i in range(2)])
    audio, rate = fn.decoders.audio(encoded, dtype=types.FLOAT, downmix=True)
    spectrum = fn.spectrogram(audio, nfft=256, window_length=200, window_step=100)
    mel = fn.mel_filter_bank(spectrum, sample_rate=8000, nfilter=32, freq_high=4000.0)
    decibels = fn.to_decibels(mel, multiplier=10.0, cutoff_db=-80)
    begin, length = fn.nonsilent_region(audio, cutoff_db=-30, window_length=64)
    emphasized = fn.preemphasis_filter(audio, preemph_coeff=0.97)
    return (
        audio, rate, spectrum, mel, decibels, fn.mfcc(decibels, n_mfcc=13, dct_type=2, normalize=True), begin, length, emphasized,
        fn.audio_resample(audio, in_rate=8000, out_rate=4000), fn.power_spectrum(fn.pad(audio, axes=[0]), nfft=512),
        fn.slice(audio, begin, length, axes=[0]), fn.normalize(decibels, axes=[1]), fn.cast(decibels, dtype=types.FLOAT16),
    )  # fmt: skip


pipe = features()
pipe.build()
for o, output in enumerate(pipe.run()):
    results[f"layout {o}"] = output.layout()
    for i in range(2):
        results[f"{o} {i}"] = np.array(output.at(i))
np.savez(target, **results)
