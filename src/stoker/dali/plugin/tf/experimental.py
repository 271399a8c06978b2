# SPDX-License-Identifier: Apache-2.0
"""Data sets of TensorFlow with inputs (as ``nvidia.dali.plugin.tf.experimental``)."""

from ....frameworks._dali_tf import DALIDatasetWithInputs as DALIDatasetWithInputs
from ....frameworks._dali_tf import Input as Input
