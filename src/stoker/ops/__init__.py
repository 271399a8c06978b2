# SPDX-License-Identifier: Apache-2.0
"""Operators, one class in one file each."""
