# SPDX-License-Identifier: Apache-2.0
"""Batches: calls of a collation are recorded as a program and replayed on the finished rows."""
