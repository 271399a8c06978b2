# SPDX-License-Identifier: Apache-2.0
"""Nodes (as ``nvidia.dali.data_node``)."""

from ..frontends.data_node import DataNode as DataNode
