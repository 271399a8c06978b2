# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentations (as ``nvidia.dali.auto_aug``)."""
