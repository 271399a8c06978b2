# SPDX-License-Identifier: Apache-2.0
"""JPEG: the decoder's kernels on CPU and GPU, the index of files, and a GPU's JPEG engines."""
