# SPDX-License-Identifier: Apache-2.0
"""RandAugment, TrivialAugment and AutoAugment under DALI's names and arguments, with DALI's magnitudes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...contract.errors import ArgumentError
from ...contract.text import brief
from . import augmentations as a
from .augmenting import Augmentation, Policy, apply_auto_augment, apply_rand_augment, apply_trivial_augment, without

# AutoAugment's policies from the appendix of arXiv 1805.09501. Each step is an augmentation, tenths
# of its probability, and its bin of 11.
_IMAGE_NET = """
equalize 8, shear_y 8 4 | color 4 9, equalize 6 | color 4 1, rotate 6 8 | solarize 8 3, equalize 4
solarize 4 2, solarize 6 2 | color 2 0, equalize 8 | equalize 4, solarize_add 8 3 | shear_x 2 9, rotate 6 8
color 6 1, equalize 10 | invert 4, rotate 6 0 | equalize 10, shear_y 6 3 | color 4 7, equalize 6
posterize 4 6, auto_contrast 4 | solarize 6 8, color 6 9 | solarize 2 4, rotate 8 9 | rotate 10 7, translate_y 8 9
solarize 8 4 | shear_y 8 0, color 6 4 | color 10 0, rotate 6 2 | equalize 8
equalize 10, auto_contrast 6 | shear_y 4 7, solarize_add 6 7 | posterize 8 2, solarize 6 10 | solarize 6 8, equalize 6
color 8 6, rotate 4 5
"""
_REDUCED_IMAGE_NET = """
posterize 4 8, rotate 6 9 | solarize 6 5, auto_contrast 6 | equalize 8, equalize 6 | posterize 6 7, posterize 6 6
equalize 4, solarize 2 4 | equalize 4, rotate 8 8 | solarize 6 3, equalize 6 | posterize 8 5, equalize 10
rotate 2 3, solarize 6 8 | equalize 6, posterize 4 6 | rotate 8 8, color 4 0 | rotate 4 9, equalize 6
equalize 8 | invert 6, equalize 10 | color 6 4, contrast 10 8 | rotate 8 8, color 10 2
color 8 8, solarize 8 7 | sharpness 4 7, invert 6 | shear_x 6 5, equalize 10 | color 4 0, equalize 6
equalize 4, solarize 2 4 | solarize 6 5, auto_contrast 6 | invert 6, equalize 10 | color 6 4, contrast 10 8
equalize 8, equalize 6
"""
_REDUCED_CIFAR10 = """
invert 1, contrast 2 6 | rotate 7 2, translate_x 3 9 | sharpness 8 1, sharpness 9 3 | shear_y 5 8, translate_y 7 9
auto_contrast 5, equalize 9 | shear_y 2 7, posterize 3 7 | color 4 3, brightness 6 7 | sharpness 3 9, brightness 7 9
equalize 6, equalize 5 | contrast 6 7, sharpness 6 5 | color 7 7, translate_x 5 8 | equalize 3, auto_contrast 4
translate_y 4 3, sharpness 2 6 | brightness 9 6, color 2 8 | solarize 5 2 | equalize 2, auto_contrast 6
equalize 2, equalize 6 | color 9 9, equalize 6 | auto_contrast 8, solarize 2 8 | brightness 1 3, color 7 0
solarize 4 5, auto_contrast 9 | translate_y 9 9, translate_y 7 9 | auto_contrast 9, solarize 8 3
equalize 8, invert 1 | translate_y 7 9, auto_contrast 9
"""
_SVHN = """
shear_x 9 4, invert 2 | shear_y 9 8, invert 7 | equalize 6, solarize 6 6 | invert 9, equalize 6
equalize 6, rotate 9 3 | shear_x 9 4, auto_contrast 8 | shear_y 9 8, invert 4 | shear_y 9 5, solarize 2 6
invert 9, auto_contrast 8 | equalize 6, rotate 9 3 | shear_x 9 4, solarize 3 3 | shear_y 8 8, invert 7
equalize 9, translate_y 6 6 | invert 9, equalize 6 | contrast 3 3, rotate 8 4 | invert 8
shear_y 7 6, solarize 4 8 | invert 6, rotate 8 4 | shear_y 3 7, translate_x 9 3 | shear_x 1 6, invert 6
solarize 7 2, translate_y 6 7 | shear_y 8 4, invert 8 | shear_x 7 9, translate_y 8 3 | shear_y 8 5, auto_contrast 7
shear_x 7 2, invert 1
"""
_BINS = 11


def _translations(use_shape: bool, most_abs: Any, most_rel: Any, pixels: float, share: float) -> list[Augmentation]:
    """Return the two translations, by shares of the shape or by pixels.

    The maximum is one number or (vertical, horizontal).
    """
    given, other = (most_rel, most_abs) if use_shape else (most_abs, most_rel)
    if other is not None:
        names = ("max_translate_abs", "max_translate_rel")
        raise ArgumentError(f"expected `{names[use_shape]}` {'with' if use_shape else 'without'} shapes, got the other")
    most = given if given is not None else share if use_shape else pixels
    vertical, horizontal = most if isinstance(most, (tuple, list)) else (most, most)
    x, y = (a.translate_x, a.translate_y) if use_shape else (a.translate_x_no_shape, a.translate_y_no_shape)
    return [x.augmentation((0, horizontal), True), y.augmentation((0, vertical), True)]


def _enhancements(most: tuple[float, float], bits: tuple[int, int]) -> list[Augmentation]:
    """Return the augmentations after the shears, with magnitudes to both sides."""
    around = [one.augmentation(most, True, a.shift_enhance_range) for one in (a.brightness, a.contrast, a.color)]
    return [
        *around, a.sharpness.augmentation(most, True, a.sharpness_kernel),
        a.posterize.augmentation(bits, False, a.poster_mask_uint8), a.solarize.augmentation((256, 0)), a.equalize,
        a.auto_contrast, a.identity,
    ]  # fmt: skip


def _paper() -> dict[str, Augmentation]:
    """Return AutoAugment's augmentations with the first paper's magnitudes: enhancements from 0.1 to 1.9."""
    enhance = {one.name: one.augmentation((0.1, 1.9), False, None) for one in (a.brightness, a.contrast, a.color)}
    return {
        **enhance, "shear_x": a.shear_x.augmentation((0, 0.3), True), "shear_y": a.shear_y.augmentation((0, 0.3), True),
        "rotate": a.rotate.augmentation((0, 30), True),
        "sharpness": a.sharpness.augmentation((0.1, 1.9), False, a.sharpness_kernel_shifted),
        "posterize": a.posterize.augmentation((0, 4), False, a.poster_mask_uint8),
        "solarize": a.solarize.augmentation((0, 256), False),
        "solarize_add": a.solarize_add.augmentation((0, 110), False), "invert": a.invert, "equalize": a.equalize,
        "auto_contrast": a.auto_contrast,
    }  # fmt: skip


def get_rand_augment_suite(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> list[Augmentation]:
    """Return RandAugment's augmentations, which get stronger with larger bins.

    Args:
        use_shape: translations are shares of the shape, which the caller must then supply.
        max_translate_abs: maximum translation in pixels, one number or (vertical, horizontal); 100 by default.
        max_translate_rel: the same as a share of the shape; 100 / 224 by default.
    """
    return [
        *_translations(use_shape, max_translate_abs, max_translate_rel, 100, 100 / 224),
        a.shear_x.augmentation((0, 0.3), True), a.shear_y.augmentation((0, 0.3), True),
        a.rotate.augmentation((0, 30), True), *_enhancements((0, 0.9), (8, 4)),
    ]  # fmt: skip


def get_rand_augment_non_monotonic_suite(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> list[Augmentation]:
    """Return RandAugment's augmentations with AutoAugment's magnitudes.

    Args:
        use_shape: translations are shares of the shape, which the caller must then supply.
        max_translate_abs: maximum translation in pixels, one number or (vertical, horizontal); 100 by default.
        max_translate_rel: the same as a share of the shape; 100 / 224 by default.
    """
    by_name = _paper()
    names = "shear_x shear_y rotate brightness contrast color sharpness posterize solarize equalize auto_contrast"
    return [
        *_translations(use_shape, max_translate_abs, max_translate_rel, 100, 100 / 224),
        *(by_name[name] for name in names.split()), a.identity,
    ]  # fmt: skip


def get_trivial_augment_wide_suite(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> list[Augmentation]:
    """Return TrivialAugment's augmentations with wide magnitudes.

    Args:
        use_shape: translations are shares of the shape, which the caller must then supply.
        max_translate_abs: maximum translation in pixels, one number or (vertical, horizontal); 32 by default.
        max_translate_rel: the same as a share of the shape; 1 by default.
    """
    return [
        *_translations(use_shape, max_translate_abs, max_translate_rel, 32, 1.0),
        a.shear_x.augmentation((0, 0.99), True), a.shear_y.augmentation((0, 0.99), True),
        a.rotate.augmentation((0, 135), True), *_enhancements((0.01, 0.99), (8, 2)),
    ]  # fmt: skip


def _policy(name: str, text: str, moved: Sequence[Augmentation] = ()) -> Policy:
    known = {**_paper(), **{one.name: one for one in moved}}
    sub_policies = []
    for sub in text.strip().replace("\n", " | ").split(" | "):
        steps = [step.split() for step in sub.split(", ")]
        sub_policies.append([(known[n], int(tenths) / 10, int(at[0]) if at else None) for n, tenths, *at in steps])
    return Policy(name, _BINS, sub_policies)


def get_image_net_policy(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> Policy:
    """Return the policy for ImageNet.

    Args:
        use_shape: translations are shares of the shape, which the caller must then supply.
        max_translate_abs: maximum translation in pixels, one number or (vertical, horizontal); 250 by default.
        max_translate_rel: the same as a share of the shape; 1 by default.
    """
    moved = _translations(use_shape, max_translate_abs, max_translate_rel, 250, 1.0)
    return _policy("ImageNetPolicy", _IMAGE_NET, moved)


def get_reduced_cifar10_policy(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> Policy:
    """Return the policy for reduced CIFAR-10.

    Args:
        use_shape: translations are shares of the shape, which the caller must then supply.
        max_translate_abs: maximum translation in pixels, one number or (vertical, horizontal); 250 by default.
        max_translate_rel: the same as a share of the shape; 1 by default.
    """
    moved = _translations(use_shape, max_translate_abs, max_translate_rel, 250, 1.0)
    return _policy("ReducedCifar10Policy", _REDUCED_CIFAR10, moved)


def get_svhn_policy(use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None) -> Policy:
    """Return the policy for SVHN.

    Args:
        use_shape: translations are shares of the shape, which the caller must then supply.
        max_translate_abs: maximum translation in pixels, one number or (vertical, horizontal); 250 by default.
        max_translate_rel: the same as a share of the shape; 1 by default.
    """
    return _policy("SvhnPolicy", _SVHN, _translations(use_shape, max_translate_abs, max_translate_rel, 250, 1.0))


def get_reduced_image_net_policy() -> Policy:
    """Return the policy for reduced ImageNet, without translations."""
    return _policy("ReducedImageNetPolicy", _REDUCED_IMAGE_NET)


_POLICIES: dict[str, Callable[..., Policy]] = {
    "image_net": get_image_net_policy, "reduced_image_net": get_reduced_image_net_policy, "svhn": get_svhn_policy,
    "reduced_cifar10": get_reduced_cifar10_policy,
}  # fmt: skip


def _arguments(shape: Any, fill_value: Any, interp_type: Any) -> dict[str, Any]:
    more = {} if shape is None else {"shape": shape}
    return {"fill_value": fill_value, "interp_type": interp_type, **more}


def rand_augment(
    data: Any, n: int, m: int, num_magnitude_bins: int = 31, shape: Any = None, fill_value: Any = 128,
    interp_type: Any = None, max_translate_abs: Any = None, max_translate_rel: Any = None, seed: Any = None,
    monotonic_mag: bool = True, excluded: Sequence[str] | None = None,
) -> Any:  # fmt: skip
    """Apply ``n`` random augmentations of one magnitude per row.

    Args:
        data: images or videos, uint8 HWC or FHWC.
        n: number of augmentations per row.
        m: magnitude bin, from 0 to ``num_magnitude_bins`` - 1.
        num_magnitude_bins: number of bins.
        shape: (height, width, ...) of the images, a node or numbers; translations are then shares of it.
        fill_value: value of pixels from outside the image; None: its border.
        interp_type: interpolation of rotations, shears and translations; INTERP_LINEAR by default.
        max_translate_abs: maximum translation in pixels, one number or (vertical, horizontal); 100 by default.
        max_translate_rel: the same as a share of the shape; 100 / 224 by default.
        seed: seed of the draws; by default it follows from the pipeline's.
        monotonic_mag: magnitudes grow with the bin; False: AutoAugment's magnitudes.
        excluded: names of augmentations that are left out.
    """
    suite = get_rand_augment_suite if monotonic_mag else get_rand_augment_non_monotonic_suite
    chosen = without(suite(shape is not None, max_translate_abs, max_translate_rel), excluded)
    return apply_rand_augment(
        chosen, data, n, m, num_magnitude_bins, seed, **_arguments(shape, fill_value, interp_type)
    )


def trivial_augment_wide(
    data: Any, num_magnitude_bins: int = 31, shape: Any = None, fill_value: Any = 128, interp_type: Any = None,
    max_translate_abs: Any = None, max_translate_rel: Any = None, seed: Any = None,
    excluded: Sequence[str] | None = None,
) -> Any:  # fmt: skip
    """Apply one random augmentation of a random magnitude per row.

    Args:
        data: images or videos, uint8 HWC or FHWC.
        num_magnitude_bins: number of magnitude bins.
        shape: (height, width, ...) of the images, a node or numbers; translations are then shares of it.
        fill_value: value of pixels from outside the image; None: its border.
        interp_type: interpolation of rotations, shears and translations; INTERP_LINEAR by default.
        max_translate_abs: maximum translation in pixels, one number or (vertical, horizontal); 32 by default.
        max_translate_rel: the same as a share of the shape; 1 by default.
        seed: seed of the draws; by default it follows from the pipeline's.
        excluded: names of augmentations that are left out.
    """
    chosen = without(
        get_trivial_augment_wide_suite(shape is not None, max_translate_abs, max_translate_rel), excluded
    )  # fmt: skip
    return apply_trivial_augment(
        chosen, data, num_magnitude_bins, seed, **_arguments(shape, fill_value, interp_type)
    )  # fmt: skip


def auto_augment(
    data: Any, policy_name: str = "image_net", shape: Any = None, fill_value: Any = 128, interp_type: Any = None,
    max_translate_abs: Any = None, max_translate_rel: Any = None, seed: Any = None,
) -> Any:  # fmt: skip
    """Apply a random sub-policy per row.

    Args:
        data: images or videos, uint8 HWC or FHWC.
        policy_name: "image_net", "reduced_image_net", "svhn" or "reduced_cifar10". "reduced_image_net" takes no
            arguments about shapes and translations.
        shape: (height, width, ...) of the images, a node or numbers; translations are then shares of it.
        fill_value: value of pixels from outside the image; None: its border.
        interp_type: interpolation of rotations, shears and translations; INTERP_LINEAR by default.
        max_translate_abs: maximum translation in pixels, one number or (vertical, horizontal); 250 by default.
        max_translate_rel: the same as a share of the shape; 1 by default.
        seed: seed of the draws; by default it follows from the pipeline's.
    """
    if policy_name not in _POLICIES:
        raise ArgumentError(f"`auto_augment`: expected a `policy_name` in {tuple(_POLICIES)}, got {brief(policy_name)}")
    if policy_name == "reduced_image_net":
        given = {"shape": shape, "max_translate_abs": max_translate_abs, "max_translate_rel": max_translate_rel}
        wrong = [name for name, value in given.items() if value is not None]
        if wrong:
            raise ArgumentError(
                f"`auto_augment`: the policy {policy_name!r} has no translations: `{wrong[0]}` is given"
            )
        policy = get_reduced_image_net_policy()
    else:
        policy = _POLICIES[policy_name](shape is not None, max_translate_abs, max_translate_rel)
    return apply_auto_augment(policy, data, seed, **_arguments(shape, fill_value, interp_type))


def auto_augment_image_net(
    data: Any, shape: Any = None, fill_value: Any = 128, interp_type: Any = None, max_translate_abs: Any = None,
    max_translate_rel: Any = None, seed: Any = None,
) -> Any:  # fmt: skip
    """Apply :func:`auto_augment` with the policy for ImageNet.

    Args:
        data: images or videos, uint8 HWC or FHWC.
        shape: (height, width, ...) of the images, a node or numbers; translations are then shares of it.
        fill_value: value of pixels from outside the image; None: its border.
        interp_type: interpolation of rotations, shears and translations; INTERP_LINEAR by default.
        max_translate_abs: maximum translation in pixels, one number or (vertical, horizontal); 250 by default.
        max_translate_rel: the same as a share of the shape; 1 by default.
        seed: seed of the draws; by default it follows from the pipeline's.
    """
    return auto_augment(
        data, "image_net", shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed
    )  # fmt: skip
