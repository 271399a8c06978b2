# SPDX-License-Identifier: Apache-2.0
"""Serialization of sources for spawned processes (like ``nvidia.dali.pickling``)."""

from ..frontends.dali.by_value import pickle_by_value as pickle_by_value
