"""The random numbers of each rule have the same distributions as torchvision's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms as v1
from torchvision.transforms import autoaugment, v2

from tests.helpers.inside import compiled, drawn
from torchdali.rng import BatchRng, Rng, prepare

COUNT = 2000
HEIGHT, WIDTH = 45, 71
IMAGE = Image.new("RGB", (WIDTH, HEIGHT))
TENSOR = torch.zeros(3, HEIGHT, WIDTH)
FAR = 1.95 * (2 / COUNT) ** 0.5  # the Kolmogorov-Smirnov distance of two equal distributions exceeds it once in a thousand


def rngs() -> list[Rng]:
    made = BatchRng.following(5, 0, COUNT).samples()
    prepare(made, 24)
    return made


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples."""
    places = np.union1d(one, other)
    shares = [np.searchsorted(np.sort(each), places, "right") / len(each) for each in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


KEYS = ("brightness", "contrast", "saturation", "hue")


def jitter_of(drawn: Any) -> list[float]:
    return [sum(KEYS.index(key) * 4**k for k, (key, _) in enumerate(drawn)), *(dict(drawn)[key] for key in KEYS)]


def jitter(t: Any) -> list[float]:
    if "v2" in type(t).__module__:
        order, *factors = t.make_params([IMAGE]).values()
    else:
        order, *factors = t.get_params(t.brightness, t.contrast, t.saturation, t.hue)
    return [sum(int(key) * 4**k for k, key in enumerate(order)), *factors]


def params(*arguments: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that calls a transform's random function; the arguments are v1's."""

    def call(t: Any) -> Any:
        if "v2" in type(t).__module__:
            return [*t.make_params([IMAGE]).values()]
        return t.get_params(*(argument(t) for argument in arguments))

    return call


def flat(values: Any) -> list[float]:
    if isinstance(values, (list, tuple)):
        return [number for value in values for number in flat(value)]
    return [] if isinstance(values, torch.Tensor) and values.dim() > 1 else [float(values)]


def corners(t: Any) -> Any:
    if "v2" in type(t).__module__:
        return t.make_params([IMAGE])["coefficients"]
    return v1.functional._get_perspective_coeffs(*t.get_params(WIDTH, HEIGHT, t.distortion_scale))


Case = tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]
CASES: dict[str, Case] = {
    "ColorJitter": (lambda m: m.ColorJitter(0.4, (0.5, 2), 0.3, 0.2), jitter, jitter_of),
    "RandomResizedCrop": (
        lambda m: m.RandomResizedCrop(9, (0.1, 0.7)), params(lambda t: IMAGE, lambda t: t.scale, lambda t: t.ratio), flat),
    "RandomResizedCrop, whole": (
        lambda m: m.RandomResizedCrop(9, (0.9, 1), (3, 4)), params(lambda t: IMAGE, lambda t: t.scale, lambda t: t.ratio), flat),
    "RandomRotation": (lambda m: m.RandomRotation((-20, 70)), params(lambda t: t.degrees), flat),
    "RandomAffine": (
        lambda m: m.RandomAffine(30, (0.1, 0.3), (0.5, 2), (-5, 9, 1, 30)),
        params(lambda t: t.degrees, lambda t: t.translate, lambda t: t.scale, lambda t: t.shear, lambda t: IMAGE.size), flat),
    "RandomAffine, one shear": (
        lambda m: m.RandomAffine((1, 2), shear=7),
        params(lambda t: t.degrees, lambda t: t.translate, lambda t: t.scale, lambda t: t.shear, lambda t: IMAGE.size), flat),
    "RandomPerspective": (
        lambda m: m.RandomPerspective(0.5, 1.0), corners, lambda drawn: v1.functional._get_perspective_coeffs(*drawn)),
    "GaussianBlur": (
        lambda m: m.GaussianBlur(3, (0.5, 3)),
        lambda t: t.make_params([])["sigma"][0] if "v2" in type(t).__module__ else t.get_params(*t.sigma), flat),
}


def steps_of(t: Any) -> Any:
    return compiled(v1.Compose([t, v1.PILToTensor()])).transforms.steps


def rectangle_of(t: Any) -> Any:
    return compiled(v1.Compose([v1.ToTensor(), t])).transforms.ends[0].rectangle


@pytest.mark.thin(3)
@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str, module: Any) -> None:
    make, theirs_of, ours_of = CASES[name]
    t = make(module)
    steps = steps_of(t)
    step = steps[0].rows[0][0] if name == "RandomPerspective" else steps[0]
    with torch.random.fork_rng():
        torch.manual_seed(1)
        theirs = np.array([flat(theirs_of(t)) for _ in range(COUNT)])
    ours = np.array([flat(ours_of(step.draw((HEIGHT, WIDTH), rng))) for rng in rngs()])
    assert ours.shape == theirs.shape
    assert [distance(*columns) < FAR for columns in zip(ours.T, theirs.T, strict=True)] == [True] * ours.shape[1]


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
def test_erasing(module: Any) -> None:
    t = module.RandomErasing(1.0, (0.05, 0.4), (0.2, 4))
    with torch.random.fork_rng():
        torch.manual_seed(1)
        call = (lambda: [*t.make_params([TENSOR]).values()]) if module is v2 else (lambda: t.get_params(TENSOR, t.scale, t.ratio, [0.0]))
        theirs = np.array([call()[:4] for _ in range(COUNT)])
    rectangle = rectangle_of(t)
    found = [rectangle.draw((HEIGHT, WIDTH), rng) for rng in rngs()]
    ours = np.array([(0, 0, HEIGHT, WIDTH) if each is None else each for each in found])
    assert all(distance(*columns) < FAR for columns in zip(ours.T, theirs.T, strict=True))
    seldom = rectangle_of(module.RandomErasing(0.3))
    assert abs(sum(seldom.draw((HEIGHT, WIDTH), rng) is not None for rng in rngs()) / COUNT - 0.3) < 0.05


def test_distortion() -> None:
    t = v2.RandomPhotometricDistort()
    distortion, permutation = steps_of(t)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        theirs = [t.make_params([IMAGE]) for _ in range(COUNT)]
    ours = [dict(distortion.draw((HEIGHT, WIDTH), rng)) for rng in rngs()]
    for key in KEYS:
        values = np.array([each[key] for each in ours if key in each])
        expected = np.array([each[f"{key}_factor"] for each in theirs if each[f"{key}_factor"] is not None])
        assert abs(len(values) - len(expected)) < 0.06 * COUNT and distance(values, expected) < 1.5 * FAR
    both = [list(each) for each in ours if {"contrast", "hue"} <= each.keys()]
    assert abs(sum(each.index("contrast") > each.index("hue") for each in both) / len(both) - 0.5) < 0.1
    assert permutation.ends == (0.5, 1.0) and permutation.rows[1] == ()
    orders = Counter(permutation.rows[0][0].draw((1, 1), rng) for rng in rngs())
    assert len(orders) == 6 and max(orders.values()) - min(orders.values()) < 0.06 * COUNT


def operations_of(t: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """Count the operations of a torchvision policy, by name and magnitude."""
    seen: Counter[Any] = Counter()

    def note(image: Any, name: str, magnitude: float, *others: Any, **more: Any) -> Any:
        seen[name, magnitude] += 1
        return image

    monkeypatch.setattr(autoaugment, "_apply_op", note)
    if "v2" in type(t).__module__:
        t._apply_image_or_video_transform = note
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for _ in range(COUNT):
            t(IMAGE)
    return seen


@pytest.mark.thin(5)
@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("make", [
    lambda m: m.RandAugment(3, 7), lambda m: m.TrivialAugmentWide(), lambda m: m.TrivialAugmentWide(5),
    *(lambda m, policy=policy: m.AutoAugment(policy) for policy in v1.AutoAugmentPolicy),
], ids=["RandAugment", "TrivialAugmentWide", "five bins", *(policy.value for policy in v1.AutoAugmentPolicy)])  # fmt: skip
def test_policies(make: Any, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    t = make(module)
    (step,) = steps_of(t)
    theirs = operations_of(t, monkeypatch)
    if module is v2:  # it uses the fractional part of a threshold
        theirs = Counter({(name, 255.0 * value if name == "Solarize" else value): n for (name, value), n in theirs.items()})
    ours = Counter(each for rng in rngs() for each in step.draw((HEIGHT, WIDTH), rng))
    often = {each for each, n in (theirs + ours).items() if n > 40}
    assert often <= {*theirs} & {*ours}
    for each in often:
        assert abs(ours[each] - theirs[each]) < 5 * (ours[each] + theirs[each]) ** 0.5, each
    names = [Counter(name for (name, _), n in some.items() for _ in range(n)) for some in (ours, theirs)]
    assert names[0].keys() == names[1].keys()


def test_probabilities_of_containers() -> None:
    t = v1.Compose([v1.RandomApply([v1.RandomInvert(1.0)], 0.2), v1.RandomChoice([v1.RandomEqualize(1.0), v1.RandomPosterize(3, 1.0)], [1, 3]),
                    v1.RandomOrder([v1.RandomSolarize(9, 1.0), v1.RandomGrayscale(1.0)]), v1.ToTensor()])
    chain = compiled(t).transforms
    counts: Counter[Any] = Counter()
    for rng in rngs():
        names = [step.name for step, _ in drawn(chain, (HEIGHT, WIDTH), rng).steps]
        counts.update([*names, tuple(names[-2:])])
    expected = {"invert": 0.2, "equalize": 0.25, "posterize": 0.75, ("solarize", "gray"): 0.5, ("gray", "solarize"): 0.5}
    for each, share in expected.items():
        assert abs(counts[each] / COUNT - share) < 0.05, each
