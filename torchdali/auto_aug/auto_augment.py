"""AutoAugment: apply a randomly chosen sub-policy to each sample.

Cubuk, Zoph, Mane, Vasudevan, Le: "AutoAugment: Learning augmentation policies from data", 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchdali.auto_aug import _tables
from torchdali.auto_aug import augmentations as a
from torchdali.auto_aug._suites import select_arguments, translations
from torchdali.auto_aug.core import Policy, select, signed_bin
from torchdali.auto_aug.core._augmentation import Augmentation, check_arguments
from torchdali.auto_aug.core._draws import draw_fraction, draw_number, step_seed
from torchdali.declaration.registry import lookup
from torchdali.graph.nodes import DataNode
from torchdali.types import DALIInterpType

__all__ = [
    "apply_auto_augment",
    "auto_augment",
    "auto_augment_image_net",
    "get_image_net_policy",
    "get_reduced_cifar10_policy",
    "get_reduced_image_net_policy",
    "get_svhn_policy",
]


def auto_augment(
    data: DataNode,
    policy_name: str = "image_net",
    shape: DataNode | Sequence[int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
    seed: int | None = None,
) -> DataNode:
    """Apply AutoAugment with one of the published policies.

    Args:
        data: Images ``HWC`` or videos ``FHWC``, uint8.
        policy_name: ``"image_net"``, ``"reduced_image_net"``, ``"reduced_cifar10"`` or ``"svhn"``.
        shape: Height and width of the samples; further extents are ignored. If you pass a shape, translations are
            fractions of the shape. Otherwise translations are in pixels. Must be None for ``"reduced_image_net"``,
            which has no translations.
        fill_value: Value of pixels outside the image; None repeats the edge.
        interp_type: Interpolation of warps; linear if None.
        max_translate_abs: Largest translation in pixels: one number, or two numbers for y and x. None means 250.
        max_translate_rel: Largest translation as a fraction of ``shape``: one number, or two numbers for y and x. None
            means 1.
        seed: Seed of the random numbers.

    Raises:
        ValueError: the policy is unknown, or arguments contradict each other.
    """
    policy = _policy_by_name(policy_name, shape is not None, max_translate_abs, max_translate_rel)
    arguments = select_arguments(list(policy.augmentations.values()), shape, fill_value, interp_type)
    return apply_auto_augment(policy, data, seed, **arguments)


def auto_augment_image_net(
    data: DataNode,
    shape: DataNode | Sequence[int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
    seed: int | None = None,
) -> DataNode:
    """Apply AutoAugment with the policy for ImageNet; see `auto_augment`."""
    return auto_augment(
        data,
        "image_net",
        shape,
        fill_value,
        interp_type,
        max_translate_abs,
        max_translate_rel,
        seed,
    )


def apply_auto_augment(policy: Policy, data: DataNode, seed: int | None = None, **kwargs: Any) -> DataNode:
    """Apply a randomly chosen sub-policy of a policy to each sample; all sub-policies are equally likely.

    Args:
        policy: The sub-policies, for example from `get_image_net_policy`.
        data: Images ``HWC`` or videos ``FHWC``.
        seed: Seed of the random numbers.
        kwargs: Arguments of the augmentations, for example ``fill_value``.

    Raises:
        ValueError: the policy is empty, no augmentation accepts an argument, or an augmentation's argument is missing.
    """
    if not policy.sub_policies:
        raise ValueError(f"Cannot run empty policy. Got {policy!r} in `apply_auto_augment` call.")
    check_arguments(list(policy.augmentations.values()), kwargs, "apply_auto_augment")
    count = len(policy.sub_policies)
    choice = draw_number(count, step_seed(seed, 0))
    for step in range(max(map(len, policy.sub_policies))):
        data = _apply_step(policy, step, data, choice, seed, kwargs)
    return data


def _apply_step(
    policy: Policy,
    step: int,
    data: DataNode,
    choice: DataNode,
    seed: int | None,
    arguments: dict[str, Any],
) -> DataNode:
    """Apply the step with the index `step` of each sample's sub-policy, if the sub-policy has enough steps."""
    rows = [steps[step] if step < len(steps) else (None, 0.0, None) for steps in policy.sub_policies]
    ops = list(dict.fromkeys(row[0] for row in rows if row[0] is not None))
    op_indices = [0 if row[0] is None else 1 + ops.index(row[0]) for row in rows]
    fraction = draw_fraction(step_seed(seed, 2 * step + 1))
    is_applied = fraction < _select_values(choice, [row[1] for row in rows], np.float32)
    op_index = _select_values(choice, op_indices, np.int32) * is_applied
    magnitude_bin: Any = _select_values(choice, [row[2] or 0 for row in rows], np.int32)
    if any(augmentation.randomly_negate for augmentation in ops):
        magnitude_bin = signed_bin(magnitude_bin, seed=step_seed(seed, 2 * step + 2))
    result: DataNode = select(
        [a.identity, *ops],
        op_index,
        data,
        magnitude_bin=magnitude_bin,
        num_magnitude_bins=policy.num_magnitude_bins,
        **arguments,
    )
    return result


def _select_values(choice: DataNode, values: Sequence[float], dtype: Any) -> Any:
    """Return a node with one value per sample. `values` contains the value for each sub-policy."""
    return lookup("_row")(choice, table=np.array(values, dtype))


# ---------------------------------------------------------------- the published policies


def get_image_net_policy(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> Policy:
    """Return the policy for ImageNet.

    See `auto_augment` for the arguments. Set ``use_shape`` to True if you will pass a ``shape`` to the augmentations.
    """
    moves = translations(use_shape, 250, 1.0, max_translate_abs, max_translate_rel)
    return _policy("ImageNetPolicy", _tables.IMAGE_NET, moves)


def get_reduced_image_net_policy() -> Policy:
    """Return the policy that was found on a subset of ImageNet; it has no translations."""
    return _policy("ReducedImageNetPolicy", _tables.REDUCED_IMAGE_NET, [])


def get_reduced_cifar10_policy(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> Policy:
    """Return the policy that was found on a subset of CIFAR-10; see `get_image_net_policy`."""
    moves = translations(use_shape, 250, 1.0, max_translate_abs, max_translate_rel)
    return _policy("ReducedCifar10Policy", _tables.REDUCED_CIFAR10, moves)


def get_svhn_policy(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> Policy:
    """Return the policy for SVHN; see `get_image_net_policy`."""
    moves = translations(use_shape, 250, 1.0, max_translate_abs, max_translate_rel)
    return _policy("SvhnPolicy", _tables.SVHN, moves)


def _policy(name: str, table: _tables.Table, moves: Sequence[Augmentation]) -> Policy:
    by_name = {augmentation.name: augmentation for augmentation in (*_suite(), *moves)}
    steps = [[(by_name[each], p, m) for each, p, m in sub_policy] for sub_policy in table]
    return Policy(name, 11, steps)


def _suite() -> list[Augmentation]:
    """Return AutoAugment's augmentations with their magnitudes, but without translations."""
    return [
        a.shear_x.augmentation((0, 0.3), True),
        a.shear_y.augmentation((0, 0.3), True),
        a.rotate.augmentation((0, 30), True),
        a.brightness.augmentation((0.1, 1.9), False, None),
        a.contrast.augmentation((0.1, 1.9), False, None),
        a.color.augmentation((0.1, 1.9), False, None),
        a.sharpness.augmentation((0.1, 1.9), False, a.sharpness_kernel_shifted),
        a.posterize.augmentation((0, 4), False, a.poster_mask_uint8),
        a.solarize.augmentation((0, 256), False),
        a.solarize_add.augmentation((0, 110), False, a.solarize_add_shift),
        a.invert,
        a.equalize,
        a.auto_contrast,
    ]


_POLICIES: dict[str, Callable[..., Policy]] = {
    "image_net": get_image_net_policy,
    "reduced_image_net": get_reduced_image_net_policy,
    "reduced_cifar10": get_reduced_cifar10_policy,
    "svhn": get_svhn_policy,
}


def _policy_by_name(
    name: Any,
    use_shape: bool,
    max_translate_abs: int | tuple[int, int] | None,
    max_translate_rel: float | tuple[float, float] | None,
) -> Policy:
    if not isinstance(name, str) or name not in _POLICIES:
        raise ValueError(f"`policy_name` must be one of {', '.join(map(repr, _POLICIES))}, got {name!r}")
    if name != "reduced_image_net":
        return _POLICIES[name](use_shape, max_translate_abs, max_translate_rel)
    arguments = {
        "shape": use_shape or None,
        "max_translate_abs": max_translate_abs,
        "max_translate_rel": max_translate_rel,
    }
    for argument, value in arguments.items():
        if value is not None:
            raise ValueError(
                f"`{argument}` must not be passed with the policy 'reduced_image_net'; none of its augmentations "
                f"needs image shapes"
            )
    return get_reduced_image_net_policy()
