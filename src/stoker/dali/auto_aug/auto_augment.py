# SPDX-License-Identifier: Apache-2.0
"""AutoAugment (as ``nvidia.dali.auto_aug.auto_augment``)."""

from ...frontends.dali.augmenting import Policy as Policy
from ...frontends.dali.augmenting import apply_auto_augment as apply_auto_augment
from ...frontends.dali.augmenting_policies import auto_augment as auto_augment
from ...frontends.dali.augmenting_policies import auto_augment_image_net as auto_augment_image_net
from ...frontends.dali.augmenting_policies import get_image_net_policy as get_image_net_policy
from ...frontends.dali.augmenting_policies import get_reduced_cifar10_policy as get_reduced_cifar10_policy
from ...frontends.dali.augmenting_policies import get_reduced_image_net_policy as get_reduced_image_net_policy
from ...frontends.dali.augmenting_policies import get_svhn_policy as get_svhn_policy
