# SPDX-License-Identifier: Apache-2.0
"""The part of a training that waits for its loader (like ``nvidia.dali.plugin.pytorch.loader_evaluator``)."""

from ....frameworks._loader_evaluator import LoaderEvaluator as LoaderEvaluator
