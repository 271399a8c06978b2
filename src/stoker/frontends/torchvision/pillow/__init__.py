# SPDX-License-Identifier: Apache-2.0
"""Lazy Pillow images: files, recorded steps and factories."""
