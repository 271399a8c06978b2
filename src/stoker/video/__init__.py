# SPDX-License-Identifier: Apache-2.0
"""Video files: the frame index, exact decoding of frames by number, and their colors.

Readers and operators use this folder. It decodes with FFmpeg's libraries, through the package PyAV (the extra `video`).
"""
