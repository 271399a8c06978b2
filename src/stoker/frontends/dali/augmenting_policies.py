# SPDX-License-Identifier: Apache-2.0
"""RandAugment, TrivialAugment and AutoAugment under DALI's names and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ...contract.errors import ArgumentError, UnsupportedError, message
from ..definition import user_line
from .augmentations import get_rand_augment_non_monotonic_suite, get_rand_augment_suite, get_trivial_augment_wide_suite
from .augmenting import apply_rand_augment, apply_trivial_augment, require, without

_POLICIES = ("image_net", "reduced_image_net", "svhn", "reduced_cifar10")
_NEEDS = "`warp_affine`, `equalize`, `filter` and `reductions.min`"


def rand_augment(
    data: Any, n: int, m: int, num_magnitude_bins: int = 31, shape: Any = None, fill_value: Any = 128,
    interp_type: Any = None, max_translate_abs: Any = None, max_translate_rel: Any = None, seed: Any = None,
    monotonic_mag: bool = True, excluded: Sequence[str] | None = None,
) -> Any:  # fmt: skip
    """``n`` random augmentations of magnitude bin ``m`` (of ``num_magnitude_bins``) per row.

    Args:
        excluded: names of augmentations that are left out. What needs operators that Stoker has not must be among them.

    Raises:
        UnsupportedError: an augmentation cannot be made, by name.
    """
    suite = get_rand_augment_suite if monotonic_mag else get_rand_augment_non_monotonic_suite
    chosen = without(suite(shape is not None, max_translate_abs, max_translate_rel), excluded)
    require(chosen, "rand_augment")
    return apply_rand_augment(
        chosen, data, n, m, num_magnitude_bins, seed, fill_value=fill_value, interp_type=interp_type
    )


def trivial_augment_wide(
    data: Any, num_magnitude_bins: int = 31, shape: Any = None, fill_value: Any = 128, interp_type: Any = None,
    max_translate_abs: Any = None, max_translate_rel: Any = None, seed: Any = None,
    excluded: Sequence[str] | None = None,
) -> Any:  # fmt: skip
    """One random augmentation of a random magnitude per row; arguments as :func:`rand_augment`."""
    chosen = without(
        get_trivial_augment_wide_suite(shape is not None, max_translate_abs, max_translate_rel), excluded
    )  # fmt: skip
    require(chosen, "trivial_augment_wide")
    return apply_trivial_augment(
        chosen, data, num_magnitude_bins, seed, fill_value=fill_value, interp_type=interp_type
    )  # fmt: skip


def auto_augment(data: Any, policy_name: str = "image_net", *_: Any, **__: Any) -> NoReturn:
    """Refused: every policy of the paper needs operators that Stoker has not; see :class:`Policy` for one's own."""
    if policy_name not in _POLICIES:
        raise ArgumentError(f"`auto_augment`: expected a `policy_name` in {_POLICIES}, got {policy_name!r}")
    raise UnsupportedError(
        message("auto_augment", f"the policy {policy_name!r} needs {_NEEDS}, which are not in Stoker yet",
                source=user_line(), hint="Give a Policy of other augmentations to `apply_auto_augment`")
    )  # fmt: skip


def auto_augment_image_net(data: Any, *_: Any, **__: Any) -> NoReturn:
    """Refused; see :func:`auto_augment`."""
    auto_augment(data, "image_net")


def _policy(name: str) -> Any:
    def get(*_: Any, **__: Any) -> NoReturn:
        auto_augment(None, name)

    get.__name__ = get.__qualname__ = f"get_{name}_policy"
    get.__doc__ = "Refused; see :func:`auto_augment`."
    return get


get_image_net_policy, get_reduced_image_net_policy = _policy("image_net"), _policy("reduced_image_net")
get_svhn_policy, get_reduced_cifar10_policy = _policy("svhn"), _policy("reduced_cifar10")
