# SPDX-License-Identifier: Apache-2.0
"""Operators that make and combine affine matrices."""
