"""Noise: distributions match their formulas, the same seed gives the same noise, layouts and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.check import PerSample, pipeline
from torchdali import fn, pipeline_def


def run(name, value, arguments, dtype="uint8", shape=(60, 80, 3), layout="HWC"):
    samples = [np.full(shape, value, dtype)] * 2
    (result,) = pipeline("torchdali", name, [samples], arguments, layout)
    assert result.layout == layout and all(
        s.dtype == dtype and s.shape == shape for s in result.samples
    )
    return result.samples


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_gaussian(dtype):
    one, other = (
        s.astype(float) for s in run("noise.gaussian", 100, {"mean": 3.0, "stddev": 8.0}, dtype)
    )
    assert abs(one.mean() - 103) < 0.3 and abs(one.std() - 8) < 0.2
    assert not np.array_equal(one, other), "two samples of a batch got the same noise"


def test_gaussian_per_sample():
    quiet, loud = run("noise.gaussian", 100, {"stddev": PerSample([0.0, 20.0])})
    assert (quiet == 100).all() and 18 < loud.astype(float).std() < 22


@pytest.mark.parametrize(
    ("dtype", "value", "factor"),
    [("uint8", 100, 5.0), ("float32", 0.5, 0.1), ("int16", 2000, 20.0)],
)
def test_shot_has_the_variance_of_its_factor(dtype, value, factor):
    noisy = run("noise.shot", value, {"factor": factor}, dtype)[0].astype(float)
    assert abs(noisy.mean() / value - 1) < 0.02
    assert abs(noisy.var() / (value * factor) - 1) < 0.08


def test_shot_of_factor_zero_keeps_the_data():
    assert (run("noise.shot", 100, {"factor": 0.0})[0] == 100).all()


@pytest.mark.parametrize("value", [100, -100])
def test_shot_of_a_negative_factor_is_zero(value):
    assert (run("noise.shot", value, {"factor": -1.0}, "int16")[0] == 0).all()


def test_shot_of_a_number():
    found = {
        float(run("noise.shot", 9, {"factor": 0.5}, "float32", layout="", shape=())[0])
        for _ in range(2)
    }
    assert all(2 * x == int(2 * x) and 0 < x < 30 for x in found)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_salt_and_pepper_hits_whole_pixels(layout):
    noisy = run(
        "noise.salt_and_pepper",
        100,
        {"prob": 0.2, "salt_vs_pepper": 0.25},
        layout=layout,
        shape=(60, 60, 3) if layout == "HWC" else (3, 60, 60),
    )[0]
    axis = layout.index("C")
    hit = noisy != 100
    assert (hit.all(axis) == hit.any(axis)).all()
    assert abs((noisy == 255).mean() - 0.05) < 0.02 and abs((noisy == 0).mean() - 0.15) < 0.03


def test_salt_and_pepper_values():
    channels = run("noise.salt_and_pepper", 100, {"prob": 0.3, "per_channel": True})[0] != 100
    assert (channels.all(-1) != channels.any(-1)).any()
    own = run("noise.salt_and_pepper", 100, {"prob": 0.3, "salt_val": 7.0, "pepper_val": 3.0})[0]
    assert set(np.unique(own)) == {3, 7, 100}
    floats = run("noise.salt_and_pepper", 0.5, {"prob": 0.3}, "float32")[0]
    assert set(np.unique(floats)) == {-1.0, 0.5, 1.0}


def test_gaussian_adds_the_numbers_of_normal():
    @pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def define():
        images = fn.external_source(lambda: np.zeros((3, 40, 50, 3), np.float32))
        mean, stddev = fn.random.uniform(range=[-50.0, 50.0]), fn.random.uniform(range=[1.0, 9.0])
        return (
            fn.noise.gaussian(images, mean=mean, stddev=stddev, seed=5),
            fn.random.normal(images, mean=mean, stddev=stddev, seed=5),
        )

    added, drawn = (np.array(each.as_tensor()) for each in define().run())
    np.testing.assert_allclose(added, drawn, atol=1e-4)


@pytest.mark.parametrize("name", ["noise.gaussian", "noise.shot", "noise.salt_and_pepper"])
def test_an_explicit_seed_repeats(name):
    first, again, other = (run(name, 100, {"seed": seed})[0] for seed in (5, 5, 6))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parity
def test_the_moments_match_dali():
    pytest.importorskip(
        "nvidia.dali",
        reason="the parity tests compare with the real DALI: install the extra 'parity'",
    )
    samples = [np.full((60, 80, 3), 100, np.uint8)] * 3
    for name, arguments in (
        ("noise.gaussian", {"stddev": 10.0}),
        ("noise.gaussian", {"mean": 5.0, "stddev": 2.0}),
        ("noise.shot", {"factor": 5.0}),
        ("noise.salt_and_pepper", {"prob": 0.2}),
        ("noise.salt_and_pepper", {"prob": 0.2, "salt_vs_pepper": 0.25, "per_channel": True}),
    ):
        ours, theirs = (
            np.stack(pipeline(library, name, [samples], arguments, "HWC")[0].samples).astype(float)
            for library in ("torchdali", "nvidia.dali")
        )
        assert abs(ours.mean() - theirs.mean()) < 1.5, name
        assert abs(ours.std() / theirs.std() - 1) < 0.06, name
