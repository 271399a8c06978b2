# SPDX-License-Identifier: Apache-2.0
"""Operators that create and combine affine matrices."""
