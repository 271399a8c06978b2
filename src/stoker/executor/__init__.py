# SPDX-License-Identifier: Apache-2.0
"""Python side of a run: the order of rows, batches in flight, delivery."""
