# SPDX-License-Identifier: Apache-2.0
"""Pipelines as scripts for NVIDIA DALI write them: its names, on this package's graph. Public as ``stoker.dali``."""
