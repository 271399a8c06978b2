# SPDX-License-Identifier: Apache-2.0
"""Front end for NVIDIA DALI's scripts: DALI's names on Stoker's graph. Public as ``stoker.dali``."""
