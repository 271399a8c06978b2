# SPDX-License-Identifier: Apache-2.0
"""Operators for tensors of any meaning."""
