# SPDX-License-Identifier: Apache-2.0
"""Batches in a GPU's memory: grouping of images, plans, and the destination of the results."""
