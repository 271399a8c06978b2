# SPDX-License-Identifier: Apache-2.0
"""Operators on audio signals and their spectra."""
