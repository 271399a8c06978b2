# SPDX-License-Identifier: Apache-2.0
"""Batches for frameworks (as ``nvidia.dali.plugin``)."""
