# SPDX-License-Identifier: Apache-2.0
"""Former place of ``pipeline_def`` with conditionals (as ``nvidia.dali.pipeline.experimental``)."""

from ...frontends.dali.pipelines import pipeline_def as pipeline_def
