# SPDX-License-Identifier: Apache-2.0
"""Inspection of a folder of images before its use."""
