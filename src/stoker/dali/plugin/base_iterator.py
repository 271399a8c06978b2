# SPDX-License-Identifier: Apache-2.0
"""Shared parts of all frameworks' iterators (like ``nvidia.dali.plugin.base_iterator``)."""

from ...frameworks._dali_epochs import LastBatchPolicy as LastBatchPolicy
