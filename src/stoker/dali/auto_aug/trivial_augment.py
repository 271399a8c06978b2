# SPDX-License-Identifier: Apache-2.0
"""TrivialAugment (as ``nvidia.dali.auto_aug.trivial_augment``)."""

from ...frontends.dali.augmenting import apply_trivial_augment as apply_trivial_augment
from ...frontends.dali.augmenting_policies import get_trivial_augment_wide_suite as get_trivial_augment_wide_suite
from ...frontends.dali.augmenting_policies import trivial_augment_wide as trivial_augment_wide
