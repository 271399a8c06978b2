# SPDX-License-Identifier: Apache-2.0
"""What the iterators of all frameworks share (as ``nvidia.dali.plugin.base_iterator``)."""

from ...frameworks._dali_epochs import LastBatchPolicy as LastBatchPolicy
