# SPDX-License-Identifier: Apache-2.0
"""Recorded steps: recipe nodes, lookup tables, rows of a batch, and their encoding for native code."""
