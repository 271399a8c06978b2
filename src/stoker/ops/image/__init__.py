# SPDX-License-Identifier: Apache-2.0
"""Image operators: codecs, colour, normalisation."""
