# SPDX-License-Identifier: Apache-2.0
"""Operators for detection: suppression and overlap of boxes, pooling of regions."""
