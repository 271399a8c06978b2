# SPDX-License-Identifier: Apache-2.0
"""Data sets of TensorFlow (as ``nvidia.dali.plugin.tf``)."""

from typing import NoReturn

from ....frameworks._dali_epochs import LastBatchPolicy as LastBatchPolicy
from ....frameworks._dali_tf import DALIDataset as DALIDataset
from ....frameworks._dali_tf import dataset_compatible_tensorflow as dataset_compatible_tensorflow
from ....frameworks._dali_tf import (
    dataset_distributed_compatible_tensorflow as dataset_distributed_compatible_tensorflow,
)
from ....frameworks._dali_tf import dataset_inputs_compatible_tensorflow as dataset_inputs_compatible_tensorflow
from ....frameworks._dali_tf_iterator import DALIIterator as DALIIterator
from ....frameworks._dali_tf_iterator import DALIIteratorWrapper as DALIIteratorWrapper
from ....frameworks._dali_tf_iterator import DALIRawIterator as DALIRawIterator
from ....frameworks._dali_tf_iterator import dataset_options as dataset_options
from ....frameworks._dali_tf_iterator import serialize_pipeline as serialize_pipeline
from ....frontends.dali.catalogue import refuse as _refuse
from . import experimental as experimental


def __getattr__(name: str) -> NoReturn:
    _refuse("dali.plugin.tf", name)
