# SPDX-License-Identifier: Apache-2.0
"""Nodes (as ``nvidia.dali.data_node``)."""

from ..frontends.definition import DataNode as DataNode
