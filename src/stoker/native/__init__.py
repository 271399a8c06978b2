# SPDX-License-Identifier: Apache-2.0
"""The compiled core: run loop, JPEG, resampling, pixel programs, file reading."""
