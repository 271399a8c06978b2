# SPDX-License-Identifier: Apache-2.0
"""Video files: the frame index, exact decoding of frames by number, their colors, and the audio of containers.

Readers and operators use this folder. It decodes with FFmpeg's libraries, through the package PyAV (the extra `video`).
"""
