# SPDX-License-Identifier: Apache-2.0
"""Nodes (as ``nvidia.dali.data_node``)."""

from ..frontends.dali.nodes import DataNode as DataNode
from ..frontends.data_node import newaxis as newaxis
