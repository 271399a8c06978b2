# SPDX-License-Identifier: Apache-2.0
"""Augmentations of images (as ``nvidia.dali.auto_aug.augmentations``)."""

from ...frontends.dali.augmentations import auto_contrast as auto_contrast
from ...frontends.dali.augmentations import brightness as brightness
from ...frontends.dali.augmentations import color as color
from ...frontends.dali.augmentations import contrast as contrast
from ...frontends.dali.augmentations import equalize as equalize
from ...frontends.dali.augmentations import identity as identity
from ...frontends.dali.augmentations import invert as invert
from ...frontends.dali.augmentations import poster_mask_uint8 as poster_mask_uint8
from ...frontends.dali.augmentations import posterize as posterize
from ...frontends.dali.augmentations import rotate as rotate
from ...frontends.dali.augmentations import sharpness as sharpness
from ...frontends.dali.augmentations import sharpness_kernel as sharpness_kernel
from ...frontends.dali.augmentations import sharpness_kernel_shifted as sharpness_kernel_shifted
from ...frontends.dali.augmentations import shear_x as shear_x
from ...frontends.dali.augmentations import shear_y as shear_y
from ...frontends.dali.augmentations import shift_enhance_range as shift_enhance_range
from ...frontends.dali.augmentations import solarize as solarize
from ...frontends.dali.augmentations import solarize_add as solarize_add
from ...frontends.dali.augmentations import translate_x as translate_x
from ...frontends.dali.augmentations import translate_x_no_shape as translate_x_no_shape
from ...frontends.dali.augmentations import translate_y as translate_y
from ...frontends.dali.augmentations import translate_y_no_shape as translate_y_no_shape
from ...frontends.dali.augmenting import Augmentation as Augmentation
from ...frontends.dali.augmenting import augmentation as augmentation
