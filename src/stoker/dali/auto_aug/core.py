# SPDX-License-Identifier: Apache-2.0
"""Building blocks of automatic augmentations (like ``nvidia.dali.auto_aug.core``)."""

from ...frontends.dali.augmenting import Augmentation as _Augmentation
from ...frontends.dali.augmenting import Policy as Policy
from ...frontends.dali.augmenting import augmentation as augmentation
from ...frontends.dali.augmenting import select as select
from ...frontends.dali.augmenting import signed_bin as signed_bin

__all__ = ("Policy", "_Augmentation", "augmentation", "select", "signed_bin")
