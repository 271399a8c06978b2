# SPDX-License-Identifier: Apache-2.0
"""Pipelines (as ``nvidia.dali.pipeline``)."""

from ...frontends.conditionals import do_not_convert as do_not_convert
from ...frontends.dali.executors import OperatorConcurrency as OperatorConcurrency
from ...frontends.dali.executors import StreamPolicy as StreamPolicy
from ...frontends.dali.nodes import DataNode as DataNode
from ...frontends.dali.pipelines import Pipeline as Pipeline
from ...frontends.dali.pipelines import pipeline_def as pipeline_def
from . import experimental as experimental
