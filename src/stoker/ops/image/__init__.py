# SPDX-License-Identifier: Apache-2.0
"""Operators that know what an image is: codecs, colour, normalisation."""
