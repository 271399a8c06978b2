# SPDX-License-Identifier: Apache-2.0
"""Compiler from nodes to a plan: lowering, passes, segments, native code."""
